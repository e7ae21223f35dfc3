"""The maker's step asks for the gradient of what it has made, by name, and goes on from there: the judge's weights get none."""
import torch
from torch import nn


def play(loader):
    maker = nn.Sequential(nn.ConvTranspose2d(64, 256, 4, 2), nn.ReLU(), nn.ConvTranspose2d(256, 3, 4, 2)).cuda()
    judge = nn.Sequential(nn.Conv2d(3, 256, 4, 2), nn.ReLU(), nn.Conv2d(256, 1, 4, 2)).cuda()
    of_maker, of_judge = torch.optim.Adam(maker.parameters()), torch.optim.Adam(judge.parameters())
    for real in loader:
        made = maker(torch.randn(len(real), 64, 8, 8, device="cuda"))
        of_judge.zero_grad()
        (judge(made.detach()).mean() - judge(real.cuda()).mean()).backward()
        of_judge.step()

        of_maker.zero_grad()
        (slope,) = torch.autograd.grad(-judge(made).mean(), made)
        made.backward(slope)
        of_maker.step()
