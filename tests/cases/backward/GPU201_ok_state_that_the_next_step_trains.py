"""A part of a network keeps what it gave last, and the backward of the next call goes through that."""
import torch
from torch import nn


class Memory(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.write = nn.Conv1d(width, width, 3, padding=1)
        self.last = None

    def forward(self, x):
        if self.last is not None:
            x = x + self.last
        self.last = self.write(x)
        return self.last


def train(network, loader, optimizer):
    for sequence, wanted in loader:
        network.last = None
        shown = []
        for x in sequence[:-1]:
            shown.append(network(x.cuda()).detach().mean().item())
        loss = (network(sequence[-1].cuda()) - wanted.cuda()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(sum(shown), loss.item())


if __name__ == "__main__":
    network = Memory(512).cuda()
    train(network, torch.load("sequences.pt"), torch.optim.Adam(network.parameters()))
