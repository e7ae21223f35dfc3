import torch
from torch import nn


def train(model, loader, opt, clear_every=100):
    for step, (x, y) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % clear_every == 0:
            torch.cuda.empty_cache()  # maybe: GPU501
        if step == 0:
            torch.cuda.empty_cache()
