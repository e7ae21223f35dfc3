import torch
import torch.nn.functional as F


def step(model, opt, x, y, chunks):
    opt.zero_grad()
    for xc, yc in zip(x.chunk(chunks), y.chunk(chunks)):
        (F.cross_entropy(model(xc), yc) * len(yc) / len(y)).backward()
    opt.step()


def train(model, opt, loader):
    chunks = 1
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        while True:
            try:
                step(model, opt, x, y, chunks)
                break
            except torch.cuda.OutOfMemoryError:
                if chunks >= len(x):
                    raise
                chunks *= 2
