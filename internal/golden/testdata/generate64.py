#!/usr/bin/env python3
"""Writes models64.safetensors: the models of generate.py in float64, where rounding is not amplified.

Usage: generate64.py OUTDIR [SEED]      (the file in this folder was made with SEED 7)

Same models, parameters and optimizer as in models.safetensors, smaller batches, fewer
steps. It exists because the deep models amplify rounding: their float32 values by
PyTorch differ from float64 by up to some percent.
"""
import pathlib, torch

text = pathlib.Path(__file__).with_name("generate.py").read_text()
common, models = text.split("# ---- elementwise")[0], text.split("# ---- models")[1]
exec(common)
exec(models[models.index("def formula"):models.index('f = Family("models")')])
exec(text[text.index("def attn"):text.index('f.case("attention"')])
exec("nn = torch.nn\n" + models[models.index("class Block"):models.index("tok = ")])
import torchvision

torch.set_default_dtype(torch.float64)
single = formula
formula = lambda t, k: single(t, k).double()
ce = F.cross_entropy
images = lambda n: (torch.randn(n, 3, 64, 64, generator=gen), torch.randint(0, 10, (n,), generator=gen))

f = Family("models64")
train(f, "mlp", nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 5)),
      torch.randn(8, 20, generator=gen), torch.randint(0, 5, (8,), generator=gen), ce, 5)
train(f, "resnet18", torchvision.models.resnet18(num_classes=10), *images(2), ce, 2, lr=.01)
train(f, "resnet50", torchvision.models.resnet50(num_classes=10), *images(2), ce, 1, lr=.01)
train(f, "mobilenet_v2", torchvision.models.mobilenet_v2(num_classes=10, dropout=0.0), *images(2), ce, 2, lr=.01)
tok = torch.randint(0, 50, (2, 17), generator=gen)
train(f, "gpt", GPT(50, 32, 4, 2, 16), tok[:, :-1], tok[:, 1:].contiguous(), lambda o, y: ce(o.reshape(-1, 50), y.reshape(-1)), 10)
f.done()
