"""The memories are renewed with grad on and carried into the next batch."""
# file: model.py
import torch
from torch import nn


class Recurrent(nn.Module):
    def __init__(self, width, layers, length):
        super().__init__()
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, 8) for _ in range(layers))
        self.out, self.length = nn.Linear(width, width), length

    def _renewed(self, hidden, mems):
        return [torch.cat([m, h])[-self.length :] for m, h in zip(mems, hidden)]

    def forward(self, x, y, *mems):
        mems = mems or [x.new_zeros(0, *x.shape[1:]) for _ in self.layers]
        hidden = []
        for layer, memory in zip(self.layers, mems):
            hidden.append(x)
            x = layer(torch.cat([memory, x]))[-len(x) :]
        return [nn.functional.mse_loss(self.out(x), y), *self._renewed(hidden, mems)]
# file: train.py
import torch

from model import Recurrent


def train(loader):
    model = Recurrent(512, 12, 256).cuda()
    opt = torch.optim.Adam(model.parameters(), 2.5e-4)
    mems = ()
    for x, y in loader:
        ret = model(x.cuda(), y.cuda(), *mems)  # expect: GPU103@m
        loss, mems = ret[0], ret[1:]  # expect: GPU103@m
        opt.zero_grad()
        loss.backward()  # maybe: GPU103
        opt.step()
