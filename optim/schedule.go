package optim

// Schedule is a factor on the rate for a step, counted from 0; pure, so nothing to save.
type Schedule func(step int64) float64
