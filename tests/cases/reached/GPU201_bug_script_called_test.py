"""A script called `matting_test.py` is no test of the code: it cuts out what is in all the pictures of a folder."""
# file: matting_test.py
import os
from glob import glob

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader

from matting.data import Pictures
from matting.net import MattingNet


def main():
    paths = glob(os.path.join("test_data", "images", "*"))
    loader = DataLoader(Pictures(paths, size=1024), batch_size=1, num_workers=1)
    net = MattingNet(3, 1)
    net.load_state_dict(torch.load("saved/matting.pth", map_location="cpu"))
    if torch.cuda.is_available():
        net.cuda()
    net.eval()
    for path, picture in zip(paths, loader):
        if torch.cuda.is_available():
            picture = picture.cuda()
        d1, d2, d3 = net(picture)  # expect: GPU201
        alpha = d1[0, 0].sigmoid().cpu().data.numpy()
        Image.fromarray((alpha * 255).astype(np.uint8)).save(path + ".alpha.png")
        del d1, d2, d3


if __name__ == "__main__":
    main()
# file: matting/net.py
from torch import nn


class MattingNet(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.stem = nn.Conv2d(inputs, 64, 3, padding=1)
        self.sides = nn.ModuleList(nn.Conv2d(64, outputs, 3, padding=1) for _ in range(3))

    def forward(self, x):
        x = self.stem(x)
        return tuple(side(x) for side in self.sides)
