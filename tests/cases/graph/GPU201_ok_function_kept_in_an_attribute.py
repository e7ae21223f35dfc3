"""What the object holds is a plain function, chosen in the constructor: no network runs, whatever goes backward elsewhere."""
# file: poses.py
import torch


def from_axis(rotation, translation):
    matrix = torch.eye(4, device=rotation.device).repeat(len(rotation), 1, 1)
    matrix[:, :3, :3] = torch.linalg.matrix_exp(rotation)
    matrix[:, :3, 3] = translation
    return matrix


def from_quaternion(rotation, translation):
    matrix = torch.eye(4, device=rotation.device).repeat(len(rotation), 1, 1)
    matrix[:, :3, :3] = rotation[:, :3, None] * rotation[:, None, :3]
    matrix[:, :3, 3] = translation
    return matrix
# file: tracker.py
import torch
from torch import nn

from poses import from_axis, from_quaternion


class Tracker:
    def __init__(self, field: nn.Module, kind):
        self.field = field.cuda()
        self.choose(kind)
        self.poses = {}

    def choose(self, kind):
        if kind == "axis":
            self.pose_of = from_axis
        else:
            self.pose_of = from_quaternion
        self.weigh = (lambda x: x.abs()) if kind == "l1" else (lambda x: x.pow(2))

    def adjust(self, rays, rotations, translations, frames):
        optimizer = torch.optim.Adam([rotations, translations])
        for _ in range(20):
            poses = self.pose_of(rotations, translations)
            loss = self.weigh(self.field(rays, poses)).mean()  # low: GPU202
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        for k, frame in enumerate(frames):
            self.poses[frame] = self.pose_of(rotations[k : k + 1], translations[k : k + 1]).detach().clone()[0]
