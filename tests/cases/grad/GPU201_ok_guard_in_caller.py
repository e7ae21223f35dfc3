import torch
from torch import nn, no_grad


def evaluate(model, loader, crit):
    model.eval()
    total, n = 0.0, 0
    for x, y in loader:
        out = model(x.cuda())
        total += crit(out, y.cuda())
        n += 1
    return total / n


def main(model, train_loader, val_loader):
    crit = nn.MSELoss()
    opt = torch.optim.Adam(model.parameters())
    for epoch in range(10):
        model.train()
        for x, y in train_loader:
            opt.zero_grad()
            crit(model(x.cuda()), y.cuda()).backward()
            opt.step()
        with no_grad():
            print(epoch, evaluate(model, val_loader, crit).item())
