"""A network's own constructor takes its weights out of autograd, by itself or through a method; and so none of its forwards makes a graph."""
import torch
from torch import nn


class Judge(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, width, 3), nn.ReLU(), nn.Conv2d(width, width, 3))
        self.settle()

    def settle(self):
        for weights in self.parameters():
            weights.requires_grad_(False)
        self.eval()

    def forward(self, x):
        return self.body(x).mean((1, 2, 3))


def judged(loader):
    judge = Judge(256).cuda()
    found = []
    for x in loader:
        found.append(judge(x.cuda()).cpu().numpy())
    return found


def accuracy(loader, bound):
    judge = Judge(256).cuda()
    judge.eval()
    right = 0
    for x, y in loader:
        right += ((judge(x.cuda()) > bound) == y.cuda()).sum().item()
    return right


if __name__ == "__main__":
    batches = torch.load("batches.pt")
    print(judged([x for x, _ in batches]), accuracy(batches, 0.5))
