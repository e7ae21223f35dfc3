"""The network of a score, which its class freezes unless it is asked not to, goes through three hands, and through a fourth that
nobody calls."""
# file: score.py
import sys

import numpy as np
import torch
from torch import nn
from torchvision.models import inception_v3


class Perceptor(nn.Module):
    def __init__(self, requires_grad=False):
        super().__init__()
        self.blocks = nn.ModuleList([inception_v3(weights="DEFAULT")])
        for param in self.parameters():
            param.requires_grad = requires_grad

    def forward(self, pictures):
        return [block(pictures) for block in self.blocks]


def activations(pictures, model, batch_size):
    model.eval()
    found = []
    for start in range(0, len(pictures), batch_size):
        batch = torch.from_numpy(np.stack(pictures[start : start + batch_size])).cuda()
        found.append(model(batch)[0].cpu().data.numpy())
    return np.concatenate(found)


def statistics(pictures, model, batch_size):
    found = activations(pictures, model, batch_size)
    return found.mean(0), np.cov(found, rowvar=False)


def statistics_of_folder(folder, model, batch_size):
    return statistics([np.load(path) for path in folder.glob("*.npy")], model, batch_size)


def score(pictures):
    model = Perceptor()
    model.cuda()
    return statistics(pictures, model, 50)


if __name__ == "__main__":
    print(score(list(np.load(sys.argv[1]))))
