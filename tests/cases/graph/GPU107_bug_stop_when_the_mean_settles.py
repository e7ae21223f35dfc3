"""Early stopping by a smoothed loss: the smoothed value links the graphs of all steps."""

import argparse

import torch
from torch import nn


class Plateau:
    def __init__(self, beta=0.98, patience=200):
        self.beta, self.patience = beta, patience
        self.smooth, self.best, self.since = 0.0, float("inf"), 0

    def should_stop(self, loss):
        self.smooth = self.beta * self.smooth + (1 - self.beta) * loss  # expect: GPU107|GPU101@s
        if self.smooth < self.best - 1e-4:
            self.best, self.since = float(self.smooth), 0
        else:
            self.since += 1
        return self.since > self.patience


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=1024)
    args = parser.parse_args()
    net = nn.Sequential(nn.Linear(64, args.width), nn.GELU(), nn.Linear(args.width, 64)).cuda()
    opt = torch.optim.AdamW(net.parameters())
    plateau = Plateau()
    while True:
        x = torch.randn(4096, 64, device="cuda")
        loss = nn.functional.mse_loss(net(x), x.roll(1, 1))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if plateau.should_stop(loss):  # expect: GPU107|GPU101@s
            break


if __name__ == "__main__":
    main()
