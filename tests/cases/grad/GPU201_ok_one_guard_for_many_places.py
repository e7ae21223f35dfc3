"""The guard is there, and the lists are joined for a product on the device."""

import torch
import torch.nn.functional as F
from torch import nn


class Retrieval:
    def __init__(self, words: nn.Module, pictures: nn.Module, joint: nn.Module):
        self.words, self.pictures, self.joint = words.cuda(), pictures.cuda(), joint.cuda()
        weights = [p for net in (words, pictures, joint) for p in net.parameters()]
        self.opt = torch.optim.AdamW(weights, 1e-4)

    def step(self, text, image):
        loss = F.cross_entropy(self.joint(self.words(text.cuda()), self.pictures(image.cuda())), self.target(text))
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()

    def target(self, text):
        return torch.arange(len(text), device="cuda")

    @torch.no_grad()
    def validate(self, loader):
        for net in (self.words, self.pictures, self.joint):
            net.eval()
        total, left, right = 0.0, [], []
        for text, image in loader:
            w = self.words(text.cuda())
            p = self.pictures(image.cuda())
            total += F.cross_entropy(self.joint(w, p), self.target(text))
            left.append(w)
            right.append(p)
        table = torch.cat(left) @ torch.cat(right).t()
        print((total / len(loader)).item(), table.argmax(1).eq(torch.arange(len(table), device="cuda")).sum().item())
