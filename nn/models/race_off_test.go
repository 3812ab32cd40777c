//go:build !race

package models_test

const race = false
