# A constant argument of the call decides which `return` of the network is taken: that of an array.
# file: net.py
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 256, 3), nn.ReLU(), nn.Conv2d(256, 64, 3))
        self.head = nn.Linear(64, 10)

    def forward(self, x, latent=False, mode="scores"):
        hidden = self.body(x).mean((2, 3))
        if latent:
            return hidden.detach().cpu().numpy()
        return self.head(hidden) if mode == "scores" else hidden.tolist()


# file: main.py
import numpy as np
import torch
from net import Net

net = Net().cuda()
optimizer = torch.optim.Adam(net.parameters())


def latents(loader):
    net.eval()
    kept = []
    for x, _ in loader:
        latent = net(x.cuda(), latent=True)  # note: GPU201
        kept.append(latent)
    return np.concatenate(kept)


def words(loader):
    net.eval()
    kept = []
    for x, _ in loader:
        kept.append(net(x.cuda(), mode="list"))  # note: GPU201
    print(len(kept))


def train(loader):
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(net(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    batches = torch.load("batches.pt")
    train(batches)
    latents(batches)
    words(batches)
