"""A batch that carries times measures none."""

import torch
from torch import nn


class Policy:
    def __init__(self, net: nn.Module, opt):
        self.net, self.opt = net.cuda(), opt

    def learn(self, loader):
        for obs, action, make_time, time_ids in loader:
            loss = nn.functional.mse_loss(self.net(obs.cuda()), action.cuda())
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            torch.cuda.synchronize()  # expect: GPU503
