import torch
import torch.nn.functional as F
from torch import nn


def free(save_memory):
    if torch.cuda.is_available() and save_memory:
        torch.cuda.empty_cache()


class Decoder(nn.Module):
    def __init__(self, blocks, save_memory=False):
        super().__init__()
        self.blocks, self.save_memory = nn.ModuleList(blocks), save_memory

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
            free(self.save_memory)  # maybe: GPU501
        return x


def iterate(policy, reward, collect, opt, rounds):
    for _ in range(rounds):
        batch = collect()
        scores = reward(batch.cuda())  # maybe: GPU202
        for _ in range(4):
            loss = -(policy(batch.cuda()) * scores.detach()).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        torch.cuda.empty_cache()


def compare(modules, x, times):
    for module in modules:
        try:
            y = module(x.cuda())
            times.append(y.shape)
        finally:
            torch.cuda.empty_cache()
