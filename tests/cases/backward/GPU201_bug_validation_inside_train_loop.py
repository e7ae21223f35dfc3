import torch
from torch import nn, optim


def main(net, train_loader, val_loader, epochs, device):
    net.to(device)
    crit = nn.CrossEntropyLoss()
    opt = optim.SGD(net.parameters(), 0.1, momentum=0.9)
    best = 0.0
    for epoch in range(epochs):
        net.train()
        for x, y in train_loader:
            opt.zero_grad()
            loss = crit(net(x.to(device)), y.to(device))
            loss.backward()
            opt.step()

        net.eval()
        hit, n, vloss = 0, 0, 0.0
        for x, y in val_loader:
            y = y.to(device)
            p = net(x.to(device))  # expect: GPU201
            vloss += crit(p, y).item()
            hit += (p.argmax(1) == y).sum().item()
            n += y.numel()
        if hit / n > best:
            best = hit / n
            torch.save(net.state_dict(), "best.pt")
        print(epoch, vloss / len(val_loader), hit / n)
