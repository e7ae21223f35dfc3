"""The constructor freezes all parameters unless it is asked not to, and nobody asks: nothing is saved."""
# file: features.py
import torch
from torch import nn
from torchvision.models import inception_v3


class Features(nn.Module):
    def __init__(self, resize=True, requires_grad=False):
        super().__init__()
        self.resize = resize
        self.blocks = nn.Sequential(*list(inception_v3(weights="DEFAULT").children())[:-1])
        for parameter in self.parameters():
            parameter.requires_grad = requires_grad

    def forward(self, x):
        if self.resize:
            x = nn.functional.interpolate(x, (299, 299))
        return self.blocks(x)
# file: score.py
import numpy as np
import torch
from torch.autograd import Variable

from features import Features


def activations(batches, model):
    model.eval()
    found = []
    for batch in batches:
        batch = Variable(batch.cuda(), volatile=True)
        found.append(model(batch).cpu().data.numpy())
    return np.concatenate(found)


def statistics(batches, model):
    rows = activations(batches, model)
    return rows.mean(0), np.cov(rows, rowvar=False)


def main(batches):
    model = Features(resize=False).cuda()
    print(statistics(batches, model))
