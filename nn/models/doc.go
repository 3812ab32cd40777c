// Package models has the models that the examples and benchmarks train. They are plain
// structs, their parameters are named as in torchvision where a model exists there, and
// they mark blocks: what saves memory acts on these by the caller's options.
package models
