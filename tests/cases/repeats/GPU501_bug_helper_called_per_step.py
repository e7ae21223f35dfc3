import gc

import torch
import torch.nn.functional as F


def cleanup():
    gc.collect()  # expect: GPU502@g
    torch.cuda.empty_cache()  # expect: GPU501@e


def train(model, loader, opt, epochs):
    model.cuda()
    for ep in range(epochs):
        for x, y in loader:
            loss = F.cross_entropy(model(x.cuda()), y.cuda())
            loss.backward()
            opt.step()
            opt.zero_grad()
            cleanup()  # expect: GPU501@e, GPU502@g
        print(ep, loss.item())
