import gc

from torch import nn


def train(net, loader, opt, epochs):
    gc.disable()
    for ep in range(epochs):
        for i, (x, y) in enumerate(loader):
            loss = nn.functional.mse_loss(net(x.cuda()), y.cuda())
            opt.zero_grad()
            loss.backward()
            opt.step()
            if i % 1000 == 999:
                gc.collect()
        gc.collect()
        print(ep, loss.item())
    gc.enable()
