import torch
from torch import nn


class Trainer:
    def __init__(self, model, opt, empty_cache_freq=0):
        self.model, self.opt, self.freq = model.cuda(), opt, empty_cache_freq
        self.updates = 0

    def train_step(self, x, y):
        loss = nn.functional.cross_entropy(self.model(x.cuda()), y.cuda())
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.updates += 1
        if self.updates == 1:
            torch.cuda.empty_cache()
        if self.freq > 0 and self.updates % self.freq == 0:
            torch.cuda.empty_cache()  # maybe: GPU501
        return loss.item()

    def fit(self, loader):
        for x, y in loader:
            self.train_step(x, y)
