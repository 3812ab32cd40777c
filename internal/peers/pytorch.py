"""A training step in PyTorch: pytorch.py MODEL THREADS BATCH TECH STEPS DEVICE

MODEL: mlp resnet18 (stem for small images) resnet50 mobilenet_v2 gpt gpt124m. TECH: none, or
joined with +: cl (channels last), ckpt, accum (micro-batches of 16), bf16, nograd.
Prints the median of a step in ms and the MiB above the built model: resident ones or, on
a card, those that PyTorch's allocator has given out.
"""
import contextlib
import os
import statistics
import sys
import time

MODEL, THREADS, B, TECH, STEPS = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4].split('+'), int(sys.argv[5])
DEVICE = sys.argv[6]
for v in ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS'):
    os.environ[v] = str(THREADS)
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(THREADS)
torch.manual_seed(0)

class Block(nn.Module):
    def __init__(s, d, h):
        super().__init__(); s.h = h
        s.l1, s.l2 = nn.LayerNorm(d), nn.LayerNorm(d)
        s.qkv, s.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        s.fc1, s.fc2 = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
    def forward(s, x):
        B, T, C = x.shape; h = s.h
        q, k, v = s.qkv(s.l1(x)).view(B, T, 3, h, C // h).permute(2, 0, 3, 1, 4)
        a = (q @ k.transpose(-2, -1)) * (C // h) ** -0.5
        a = a.masked_fill(torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1), float('-inf')).softmax(-1)
        x = x + s.proj((a @ v).transpose(1, 2).reshape(B, T, C))
        return x + s.fc2(F.gelu(s.fc1(s.l2(x))))
class GPT(nn.Module):
    def __init__(s, L=6, d=256, h=8, T=128, V=256):
        super().__init__(); s.te, s.pe = nn.Embedding(V, d), nn.Embedding(T, d)
        s.blocks = nn.ModuleList(Block(d, h) for _ in range(L)); s.ln, s.head = nn.LayerNorm(d), nn.Linear(d, V, bias=False)
    def forward(s, i, ck=None):
        x = s.te(i) + s.pe(torch.arange(i.shape[1], device=i.device))
        for b in s.blocks: x = ck(b, x) if ck else b(x)
        return s.head(s.ln(x)).flatten(0, 1)

def status(k):
    for l in open('/proc/self/status'):
        if l.startswith(k):
            return int(l.split()[1]) / 1024


ck = None
if 'ckpt' in TECH:
    from torch.utils.checkpoint import checkpoint as ck
if MODEL == 'mlp':
    net = nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
    X, Y = torch.randn(B, 784), torch.randint(10, (B,))
elif MODEL == 'gpt':
    net = GPT()
    X, Y = torch.randint(256, (B, 128)), torch.randint(256, (B * 128,))
elif MODEL == 'gpt124m':
    net = GPT(L=12, d=768, h=12, T=1024, V=50257)
    net.head.weight = net.te.weight
    X, Y = torch.randint(50257, (B, 1024)), torch.randint(50257, (B * 1024,))
else:
    import torchvision
    if MODEL == 'resnet18':
        net = torchvision.models.resnet18(num_classes=10)
        net.conv1, net.maxpool = nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.Identity()
        X, Y = torch.randn(B, 3, 32, 32), torch.randint(10, (B,))
    else:
        net = getattr(torchvision.models, MODEL)()
        X, Y = torch.randn(B, 3, 224, 224), torch.randint(1000, (B,))
    if 'cl' in TECH:
        net = net.to(memory_format=torch.channels_last)
        X = X.contiguous(memory_format=torch.channels_last)


def blocks(x, n=net):
    x = n.maxpool(n.relu(n.bn1(n.conv1(x))))
    for l in (n.layer1, n.layer2, n.layer3, n.layer4):
        for b in l:
            x = ck(b, x)
    return n.fc(n.avgpool(x).flatten(1))


call = net
net, X, Y = net.to(DEVICE), X.to(DEVICE), Y.to(DEVICE)
if MODEL.startswith('gpt'):
    call = lambda x: net(x, ck)
elif ck:
    call = blocks
opt = torch.optim.SGD(net.parameters(), lr=0.001, momentum=0.9)
amp = (lambda: torch.autocast(DEVICE.split(':')[0], dtype=torch.bfloat16)) if 'bf16' in TECH else contextlib.nullcontext


def train():
    opt.zero_grad(set_to_none=True)
    n = 16 if 'accum' in TECH else B
    per = Y.numel() // B
    for i in range(0, B, n):
        with amp():
            l = F.cross_entropy(call(X[i:i + n]).float(), Y[i * per:(i + n) * per]) * (n / B)
        l.backward()
        l.item()
    opt.step()


def infer():
    with torch.no_grad(), amp():
        F.cross_entropy(call(X).float(), Y).item()


f = infer if 'nograd' in TECH else train
open('/proc/self/clear_refs', 'w').write('5')
base = status('VmRSS')
if DEVICE != 'cpu':
    held = torch.cuda.memory_allocated(DEVICE)
for _ in range(2):
    f()
times = []
for _ in range(STEPS):
    t = time.perf_counter()
    f()
    if DEVICE != 'cpu':
        torch.cuda.synchronize(DEVICE)
    times.append(time.perf_counter() - t)
mib = status('VmHWM') - base if DEVICE == 'cpu' else (torch.cuda.max_memory_allocated(DEVICE) - held) / 2**20
print(f"{statistics.median(times) * 1e3:.3f} {mib:.1f}")
