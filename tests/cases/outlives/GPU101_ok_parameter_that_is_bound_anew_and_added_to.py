"""What a forward is given is bound anew, and then its own weights are added to it: nobody outside holds that."""
import torch
from torch import nn


class Placed(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(8, 64)
        self.position = nn.Parameter(torch.randn(1, 7, 64))
        self.head = nn.Linear(64, 8)

    def placed(self, x):
        x = self.embed(x)
        x += self.position
        return self.head(x)

    def forward(self, x):
        return self.placed(x)


def train(loader):
    model = Placed().cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for x, y in loader:
        loss = (model(x.cuda()) - y.cuda()).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
