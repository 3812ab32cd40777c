//go:build !amd64 || race

package kern

// Never called: the level is portable.

func addVec(n int, dst, x, y, scalars *float32)                                   {}
func mulVec(n int, dst, x, y, scalars *float32)                                   {}
func axpyVec(n int, dst, x, scalars *float32)                                     {}
func reluVec(n int, dst, x, scalars *float32)                                     {}
func reluBackVec(n int, dst, y, dy, scalars *float32)                             {}
func expVec(n int, dst, x, scalars *float32)                                      {}
func sigmoidVec(n int, dst, x, scalars *float32)                                  {}
func tanhVec(n int, dst, x, scalars *float32)                                     {}
func geluVec(n int, dst, x, scalars *float32)                                     {}
func geluTanhVec(n int, dst, x, scalars *float32)                                 {}
func expShiftVec(n int, dst, x, scalars *float32)                                 {}
func siluVec(n int, dst, x, scalars *float32)                                     {}
func geluBackVec(n int, dst, x, dy, scalars *float32)                             {}
func geluTanhBackVec(n int, dst, x, dy, scalars *float32)                         {}
func sumVec(n int, x *float32, mask *int32) float64                               { return 0 }
func subVec(n int, dst *float32, x *float32, y *float32, scalars *float32)        {}
func divVec(n int, dst *float32, x *float32, y *float32, scalars *float32)        {}
func scaleVec(n int, dst *float32, x *float32, scalars *float32)                  {}
func lerpVec(n int, dst *float32, x *float32, y *float32, scalars *float32)       {}
func clampVec(n int, dst *float32, x *float32, scalars *float32)                  {}
func clampBackVec(n int, dst *float32, y *float32, dy *float32, scalars *float32) {}
func leakyVec(n int, dst *float32, x *float32, scalars *float32)                  {}
func leakyBackVec(n int, dst *float32, y *float32, dy *float32, scalars *float32) {}
func layerVec(n int, dst *float32, x *float32, w *float32, b *float32, scalars *float32) {
}
func maxVec(n int, x *float32, mask *int32) float32               { return 0 }
func columnsVec32(n int, sums *float64, x *float32, distance int) {}
func columnsVec4(n int, sums *float64, x *float32, distance int)  {}
func layerColumnsVec(n int, sums *float64, products *float64, grad *float32, x *float32, scalars *float32) {
}
func sgdVec(n int, w, grad, a, b, c, scalars *float32)                              {}
func momentumVec(n int, w, grad, a, b, c, scalars *float32)                         {}
func nesterovVec(n int, w, grad, a, b, c, scalars *float32)                         {}
func adamVec(n int, w, grad, a, b, c, scalars *float32)                             {}
func amsgradVec(n int, w, grad, a, b, c, scalars *float32)                          {}
func rmspropVec(n int, w, grad, a, b, c, scalars *float32)                          {}
func rmspropMomentumVec(n int, w, grad, a, b, c, scalars *float32)                  {}
func rmspropCenteredVec(n int, w, grad, a, b, c, scalars *float32)                  {}
func rmspropCenteredMomentumVec(n int, w, grad, a, b, c, scalars *float32)          {}
func adagradVec(n int, w, grad, a, b, c, scalars *float32)                          {}
func adadeltaVec(n int, w, grad, a, b, c, scalars *float32)                         {}
func nadamVec(n int, w, grad, a, b, c, scalars *float32)                            {}
func adamaxVec(n int, w, grad, a, b, c, scalars *float32)                           {}
func philoxVec(n int, dst, start *uint32)                                           {}
func dropVec(n int, dst, x, numbers, scalars *float32)                              {}
func decodeSigned8(n int, dst *float32, src *uint8, scales, tables *float32)        {}
func decodeUnsigned8(n int, dst *float32, src *uint8, scales, tables *float32)      {}
func encodeSigned8(n int, dst *uint8, src *float32, scales, tables *float32)        {}
func encodeUnsigned8(n int, dst *uint8, src *float32, scales, tables *float32)      {}
func sigmoidBackVec(n int, dst, y, dy, scalars *float32)                            {}
func tanhBackVec(n int, dst, y, dy, scalars *float32)                               {}
func siluBackVec(n int, dst, x, dy, scalars *float32)                               {}
func logVec(n int, dst, x, scalars *float32)                                        {}
func sqrtVec(n int, dst, x, scalars *float32)                                       {}
func sqrtBackVec(n int, dst, y, dy, scalars *float32)                               {}
func softplusVec(n int, dst, x, scalars *float32)                                   {}
func softplusBackVec(n int, dst, y, dy, scalars *float32)                           {}
func eluVec(n int, dst, x, scalars *float32)                                        {}
func eluBackVec(n int, dst, y, dy, scalars *float32)                                {}
func normalVec(n int, dst, x, scalars *float32)                                     {}
func uniformVec(n int, dst *float32, numbers *uint32, scalars *float64)             {}
func squareColumnsVec(n int, columns *float64, x *float32) float64                  { return 0 }
func scaledSquaresVec(n int, columns *float64, x *float32) float64                  { return 0 }
func adafactorVec(n int, columns *float64, w, x *float32, by float64, keep float32) {}
