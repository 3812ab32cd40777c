"""Single operations in PyTorch: operations.py THREADS

Prints lines of a name, a tab and GB/s, for operations on 64 MiB, or microseconds, for tiny ones.
"""
import os
import statistics
import sys
import time

for v in ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS'):
    os.environ[v] = sys.argv[1]
import torch
import torch.nn.functional as F

torch.set_num_threads(int(sys.argv[1]))
torch.manual_seed(0)


def seconds(f, samples=11, warm=2):
    times = []
    for i in range(warm + samples):
        t = time.perf_counter()
        r = f()
        d = time.perf_counter() - t
        del r
        if i >= warm:
            times.append(d)
    return statistics.median(times)


def report(name, bytes, *ways):
    """The fastest of several ways."""
    print(f"{name}\t{bytes / min(map(seconds, ways)) / 1e9:.3f}", flush=True)


CHAIN = 100
z = torch.zeros(16)
tracked = torch.zeros(16, requires_grad=True)


def chain(x, backward=False):
    y = x
    for _ in range(CHAIN):
        y = y + x
    if backward:
        y.sum().backward()


for name, f in (('not recorded', lambda: chain(z)), ('recorded', lambda: chain(tracked)), ('with its gradient', lambda: chain(tracked, True))):
    print(f"add, 16 elements, {name}\t{seconds(f, 2000, 50) * 1e6 / CHAIN:.3f}", flush=True)

ROWS, WIDTH = 16384, 1024
N = ROWS * WIDTH
x, y = torch.randn(N), torch.randn(N)
m, images = x.view(ROWS, WIDTH), x.view(64, 64, 64, 64)
last = images.contiguous(memory_format=torch.channels_last)
w, b = torch.ones(WIDTH), torch.zeros(WIDTH)
scale, shift = torch.ones(64), torch.zeros(64)
with torch.no_grad():
    report('add', 12 * N, lambda: x + y)
    report('ReLU', 8 * N, lambda: torch.relu(x))
    report('GELU', 8 * N, lambda: F.gelu(x))
    report('softmax, rows of 1024', 8 * N, lambda: F.softmax(m, -1))
    report('layer norm, rows of 1024', 8 * N, lambda: F.layer_norm(m, (WIDTH,), w, b))
    report('batch norm, 64×64×64×64', 8 * N, *[lambda i=i: F.batch_norm(i, None, None, scale, shift, True) for i in (images, last)])
    report('dropout', 8 * N, lambda: F.dropout(x, 0.1, True))
    report('max pooling 3×3, stride 2', 5 * N, *[lambda i=i: F.max_pool2d(i, 3, 2, 1) for i in (images, last)])
    report('cast to bfloat16', 6 * N, lambda: x.bfloat16())
del x, y, m, images, last

n = 25_000_000
for name, per, make in (
        ('Adam', 28, [lambda p, e=e: torch.optim.Adam([p], foreach=e) for e in (False, True)]),
        ('SGD with momentum', 20, [lambda p, e=e: torch.optim.SGD([p], lr=0.001, momentum=0.9, foreach=e) for e in (False, True)])):
    steps = []
    for way in make:
        p = torch.nn.Parameter(torch.zeros(n))
        p.grad = torch.ones(n)
        steps.append(seconds(way(p).step))
    print(f"{name}\t{per * n / min(steps) / 1e9:.3f}", flush=True)
