"""One missing guard: three networks run, two lists and a sum keep what they say. It is one mistake, and should be told once."""

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

    def validate(self, loader):
        for net in (self.words, self.pictures, self.joint):
            net.eval()
        total, left, right = 0.0, [], []
        for text, image in loader:
            w = self.words(text.cuda())  # expect: GPU201|GPU101@o
            p = self.pictures(image.cuda())  # expect: GPU201|GPU101@o
            scores = self.joint(w, p)  # expect: GPU201|GPU101@o
            total += F.cross_entropy(scores, self.target(text))  # expect: GPU201|GPU101@o
            left.append(w)  # expect: GPU201|GPU101@o
            right.append(p)  # expect: GPU201|GPU101@o
        table = torch.cat(left) @ torch.cat(right).t()
        print((total / len(loader)).item(), table.argmax(1).eq(torch.arange(len(table), device="cuda")).sum().item())
