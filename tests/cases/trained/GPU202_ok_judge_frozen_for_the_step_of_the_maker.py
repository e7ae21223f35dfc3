"""The judge wants no gradients while the maker learns, and wants them again for its own step."""
import torch
from torch import nn


def wants(network, on):
    for weight in network.parameters():
        weight.requires_grad_(on)


def play(loader):
    maker = nn.Sequential(nn.ConvTranspose2d(64, 256, 4, 2), nn.ReLU(), nn.ConvTranspose2d(256, 3, 4, 2)).cuda()
    judge = nn.Sequential(nn.Conv2d(3, 256, 4, 2), nn.ReLU(), nn.Conv2d(256, 1, 4, 2)).cuda()
    of_maker, of_judge = torch.optim.Adam(maker.parameters()), torch.optim.Adam(judge.parameters())
    for real in loader:
        made = maker(torch.randn(len(real), 64, 8, 8, device="cuda"))
        wants(judge, True)
        of_judge.zero_grad()
        (judge(made.detach()).mean() - judge(real.cuda()).mean()).backward()
        of_judge.step()

        wants(judge, False)
        of_maker.zero_grad()
        (-judge(made).mean()).backward()
        of_maker.step()
