# Grad is set by a call that is part of an expression: chosen by the phase, at the end of a test, or bound to a name.
import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda")
net = nn.Sequential(nn.Conv2d(3, 256, 3), nn.ReLU(), nn.Conv2d(256, 10, 3)).to(device)
optimizer = torch.optim.Adam(net.parameters())


def run(loader, phase="train"):
    net.train() if phase == "train" else net.eval()
    torch.set_grad_enabled(True) if phase == "train" else torch.set_grad_enabled(False)
    total = 0.0
    for x, y in loader:
        out = net(x.to(device))
        loss = F.cross_entropy(out, y.to(device))  # maybe: GPU401
        if phase == "train":
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss.item()
    return total


def score(loader):
    net.eval()
    _ = torch.set_grad_enabled(False)
    right = 0
    for x, y in loader:
        right += (net(x.to(device)).argmax(1).cpu() == y).sum().item()
    return right


def sample(loader, training):
    training or torch.set_grad_enabled(False)
    for x, _ in loader:
        net.eval()
        yield net(x.to(device)).argmax(1).cpu()


def main(train_loader, valid_loader):
    for _ in range(10):
        run(train_loader)
        run(valid_loader, phase="valid")
        print(score(valid_loader))


if __name__ == "__main__":
    main(torch.load("train.pt"), torch.load("valid.pt"))
