# Grad is off in what `set_grad_enabled(False)` decorates, and on everywhere else.
import torch
import torch.nn as nn

device = torch.device("cuda")
net = nn.Sequential(nn.Conv2d(3, 256, 3), nn.ReLU(), nn.Conv2d(256, 10, 3)).to(device)


def scores(x):
    return net(x).argmax(1)  # maybe: GPU201


def evaluate(loader):
    net.eval()
    quiet = torch.set_grad_enabled(False)(scores)
    print(quiet(next(iter(loader))[0].to(device)))
    right = 0
    for x, y in loader:
        right += (net(x.to(device)).argmax(1).cpu() == y).sum().item()  # expect: GPU201
    return right


def evaluate_after(loader, training):
    net.eval()
    torch.set_grad_enabled(True) if training else torch.set_grad_enabled(True)
    right = 0
    for x, y in loader:
        right += (net(x.to(device)).argmax(1).cpu() == y).sum().item()  # expect: GPU201
    return right


if __name__ == "__main__":
    data = torch.load("test.pt")
    print(evaluate(data), evaluate_after(data, False))
