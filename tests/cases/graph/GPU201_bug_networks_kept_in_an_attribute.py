"""The same with networks: one of two, chosen in the constructor, runs once more for each frame after the training."""

import torch
from torch import nn
from torchvision import models


class Tracker:
    def __init__(self, field: nn.Module, kind):
        self.field = field.cuda()
        if kind == "deep":
            self.pose_of = models.resnet101(pretrained=True).cuda()
        else:
            self.pose_of = models.resnet50(pretrained=True).cuda()
        self.poses = {}

    def adjust(self, rays, frames):
        optimizer = torch.optim.Adam(self.pose_of.parameters())
        for _ in range(20):
            poses = self.pose_of(rays)
            loss = self.field(rays, poses).mean()  # low: GPU202
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        self.pose_of.eval()
        for k, frame in enumerate(frames):
            self.poses[frame] = self.pose_of(frame.cuda()).detach().clone()[0]  # expect: GPU201
