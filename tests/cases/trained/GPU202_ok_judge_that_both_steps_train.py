"""Both go forward through the judge and both steps train it: what the maker's backward makes of its weights is used."""
import torch
from torch import nn


def play(loader):
    maker = nn.Sequential(nn.ConvTranspose2d(64, 256, 4, 2), nn.ReLU(), nn.ConvTranspose2d(256, 3, 4, 2)).cuda()
    judge = nn.Sequential(nn.Conv2d(3, 256, 4, 2), nn.ReLU(), nn.Conv2d(256, 1, 4, 2)).cuda()
    of_maker, of_judge = torch.optim.Adam(maker.parameters()), torch.optim.Adam(judge.parameters())
    for real in loader:
        made = maker(torch.randn(len(real), 64, 8, 8, device="cuda"))
        of_maker.zero_grad()
        of_judge.zero_grad()
        (judge(made) - judge(real.cuda())).pow(2).mean().backward()
        of_maker.step()
        of_judge.step()
