"""One program that chooses a card late: a context too many, but nobody says that there are several such processes."""

import torch
from torch import nn


def main(gpu):
    model = nn.Linear(64, 64).cuda()
    torch.cuda.set_device(gpu)  # low: GPU605
    return model.cuda()
