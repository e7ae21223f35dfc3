"""Under a flag the helper makes no array of what the network gives, and returns that."""

# file: windows.py
import torch
import torch.nn.functional as F


def one_case(net, volume, as_array):
    y = F.softmax(net(torch.from_numpy(volume[None]).cuda()), dim=1)
    if as_array:
        y = y.cpu().data.numpy()
    return y
# file: measure.py
import torch
from windows import one_case
from networks import Segmenter


def measure(path, volume, as_array=True):
    net = Segmenter(16).cuda()
    net.load_state_dict(torch.load(path, map_location="cpu"))
    net.eval()
    return one_case(net, volume, as_array)  # maybe: GPU201
# file: networks.py
from torch import nn


class Segmenter(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(*[nn.Conv3d(width, width, 3, padding=1) for _ in range(8)])

    def forward(self, x):
        return self.layers(x)
