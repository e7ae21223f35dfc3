"""A teacher of a library that leaves its weights trainable, given to a helper that only counts them."""

import timm
import torch
from torch import nn


def report(network):
    print(sum(weight.numel() for weight in network.parameters()))


class Learner:
    def __init__(self, student, device):
        self.student = student.to(device)
        self.teacher = timm.create_model("resnet50", pretrained=True).to(device).eval()
        report(self.teacher)
        self.optimizer = torch.optim.Adam(self.student.parameters())

    def update(self, x):
        wanted = self.teacher(x).detach()  # expect: GPU202
        loss = nn.functional.mse_loss(self.student(x), wanted)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
