"""Evaluations that show something where they are asked to, between two passes over the data, or of each batch one sample."""

import cv2
import matplotlib.pyplot as plt
import torch
from torch import nn


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 64, 3), nn.ReLU(), nn.Conv2d(64, 1024, 3), nn.AdaptiveAvgPool2d(1))
        self.head = nn.Linear(1024, 10)

    def forward(self, x):
        return self.head(self.body(x).flatten(1))


def look_if_asked(model, loader, show):
    model.eval()
    for pictures, _ in loader:
        maps = model(pictures.cuda())  # expect: GPU201
        plt.imshow(maps[0].argmax(0).detach().cpu())
        if show:
            plt.show()


def film(model, frames):
    model.eval()
    for frame in frames:
        maps = model(torch.from_numpy(frame).cuda())  # expect: GPU201
        cv2.imshow("maps", maps[0].argmax(0).detach().cpu().numpy())
        cv2.waitKey(1)


def compare(checkpoints, data):
    net = Small().cuda()
    net.eval()
    loader = torch.utils.data.DataLoader(data, batch_size=256)
    for checkpoint in checkpoints:
        net.load_state_dict(torch.load(checkpoint, map_location="cpu"))
        right = 0
        for x, y in loader:
            right += (net(x.cuda()).argmax(1).cpu() == y).sum().item()  # expect: GPU201
        plt.plot(right)
        plt.pause(1)


def look_at_the_first_of_each_batch(model, data):
    model.eval()
    right = 0
    for pictures, labels in torch.utils.data.DataLoader(data, batch_size=32):
        scores = model(pictures.cuda())  # expect: GPU201
        plt.imshow(pictures[0])
        plt.show()
        right += (scores.argmax(1).cpu() == labels).sum().item()
    return right
