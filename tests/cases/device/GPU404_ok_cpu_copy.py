import torch
from torch import nn


def train(model, loader, val, epochs):
    model.cuda()
    opt = torch.optim.Adam(model.parameters())
    best_acc, best = 0.0, None
    for _ in range(epochs):
        for x, y in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(model(x.cuda()), y.cuda()).backward()
            opt.step()
        acc = val(model)
        if acc > best_acc:
            best_acc = acc
            best = {k: v.detach().cpu().clone() for k, v in model.state_dict().items()}
            torch.save({"model": model.state_dict(), "opt": opt.state_dict()}, "best.pt")
    model.load_state_dict(best)
