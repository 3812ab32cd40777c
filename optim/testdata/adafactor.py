"""Adafactor's reference values, in float64, as Shazeer and Stern (2018) write it down:
Algorithms 4 and 5, with whole matrices and sums (1ᵀ is a sum). Dimensions after the first
are joined. Run as: python3 adafactor.py > adafactor.json"""

import json

import numpy as np

cases = {
    "paper": dict(shape=[5, 3], lr=1e-2, relative=True, weight_decay=0.0),
    "conv": dict(shape=[4, 2, 3, 3], lr=1e-2, relative=True, weight_decay=0.0),
    "vector": dict(shape=[7], lr=1e-2, relative=True, weight_decay=0.0),
    "one row": dict(shape=[1, 6], lr=1e-2, relative=True, weight_decay=0.0),
    "absolute, decay": dict(shape=[3, 8], lr=0.05, relative=False, weight_decay=0.1),
    "large rate": dict(shape=[6, 4], lr=0.5, relative=True, weight_decay=0.01),
}
steps, eps1, eps2, d = 6, 1e-30, 1e-3, 1.0


def rms(x):
    return np.sqrt(np.sum(x**2) / x.size)


def run(rng, shape, lr, relative, weight_decay):
    n, m = shape[0], int(np.prod(shape[1:]))
    x = rng.standard_normal((n, m)) * 0.1
    r, c, v = np.zeros((n, 1)), np.zeros((1, m)), np.zeros((n, m))
    one_n, one_m = np.ones((n, 1)), np.ones((m, 1))
    out = dict(shape=shape, lr=lr, relative=relative, weight_decay=weight_decay, w0=x.ravel().tolist(), grads=[], weights=[])
    for t in range(1, steps + 1):
        g = rng.standard_normal((n, m)) * np.exp(rng.standard_normal((n, 1))) * (0.2 if t % 3 else 3)
        beta2 = 1 - t**-0.8
        square = g**2 + eps1 * one_n @ one_m.T
        if len(shape) > 1 and n > 1:
            r = beta2 * r + (1 - beta2) * square @ one_m
            c = beta2 * c + (1 - beta2) * one_n.T @ square
            v = r @ c / (one_n.T @ r)
        else:
            v = beta2 * v + (1 - beta2) * square
        u = g / np.sqrt(v)
        u = u / max(1, rms(u) / d)
        alpha = max(eps2, rms(x)) * min(lr, 1 / np.sqrt(t)) if relative else lr
        x = x * (1 - lr * weight_decay) - alpha * u
        out["grads"].append(g.ravel().tolist())
        out["weights"].append(x.ravel().tolist())
    return out


rng = np.random.default_rng(7)
print("{" + ",\n".join(json.dumps(name) + ": " + json.dumps(run(rng, **c)) for name, c in cases.items()) + "}")
