"""What an adversary sees of the real is only matched: gradients of its weights are made, and cleared before its own step."""

import torch
import torch.nn.functional as F
from torch import nn, optim


class Judge(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Conv2d(3, width, 3), nn.Conv2d(width, width, 3)])

    def forward(self, x):
        kept = []
        for block in self.blocks:
            x = block(x)
            kept.append(x)
        return kept


def restorer(width):
    return nn.Sequential(nn.Conv2d(3, width, 3), nn.ReLU(), nn.ConvTranspose2d(width, 3, 3))


def restore(loader, width):
    gen, judge = restorer(width).cuda(), Judge(width).cuda()
    g_opt, d_opt = optim.Adam(gen.parameters(), 1e-4), optim.Adam(judge.parameters(), 1e-4)
    for low, high in loader:
        low, high = low.cuda(), high.cuda()
        made = gen(low)
        d_opt.zero_grad()
        real, fake = judge(high), judge(made.detach())
        (F.relu(1 - real[-1]).mean() + F.relu(1 + fake[-1]).mean()).backward()
        d_opt.step()

        g_opt.zero_grad()
        fake = judge(made)
        real = judge(high)  # expect: GPU202
        loss = sum(F.l1_loss(a, b) for a, b in zip(fake, real))
        loss.backward()
        g_opt.step()


class Trainer:
    def __init__(self, width):
        self.gen, self.judge = restorer(width).cuda(), Judge(width).cuda()
        self.g_opt, self.d_opt = optim.Adam(self.gen.parameters()), optim.Adam(self.judge.parameters())

    def judge_step(self, low, high):
        self.d_opt.zero_grad()
        with torch.no_grad():
            fake = self.gen(low)
        loss = self.judge(fake)[-1].mean() - self.judge(high)[-1].mean()
        loss.backward()
        self.d_opt.step()

    def gen_step(self, low, high):
        self.g_opt.zero_grad()
        ours = self.judge(self.gen(low))
        theirs = self.judge(high)  # expect: GPU202
        loss = sum(F.l1_loss(a, b) for a, b in zip(ours, theirs))
        loss.backward()
        self.g_opt.step()

    def fit(self, loader):
        for low, high in loader:
            self.judge_step(low.cuda(), high.cuda())
            self.gen_step(low.cuda(), high.cuda())


def added_up(loader, width):
    gen, judge = restorer(width).cuda(), Judge(width).cuda()
    g_opt, d_opt = optim.Adam(gen.parameters(), 1e-4), optim.Adam(judge.parameters(), 1e-4)
    for low, high in loader:
        d_opt.zero_grad()
        made = gen(low.cuda()).detach()  # expect: GPU202
        loss = judge(made)[-1].mean()
        loss.backward()
        g_opt.zero_grad()
        theirs = judge(high.cuda())  # its gradients are added to those of the step below
        loss = F.l1_loss(judge(gen(low.cuda()))[-1], theirs[-1])
        loss.backward()
        g_opt.step()
        d_opt.step()
