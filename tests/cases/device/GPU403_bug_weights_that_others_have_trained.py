"""A base network that others have trained, by its name: nobody knows what it was saved from. Beside it the program's own states."""

import torch
from torch import nn


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Sequential(nn.Linear(4096, 8192), nn.Linear(8192, 4096))
        self.head = nn.Linear(4096, 4096)

    def forward(self, x):
        return self.head(self.base(x))


def train(args, loader, criterion):
    net = Detector().cuda()
    optimizer = torch.optim.Adam(net.parameters())
    if args.resume:
        state = torch.load(args.resume)  # expect: GPU403
        net.load_state_dict(state["net"])
        optimizer.load_state_dict(state["optimizer"])
    else:
        weights = torch.load(args.save_folder + args.basenet)  # low: GPU403
        net.base.load_state_dict(weights)
    for x, y in loader:
        loss = criterion(net(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, "last.pt")
