"""Ten scores for each picture of a test set, a few hundred kilobytes, joined and compared on the device."""

import torch
from torch import nn
from torchvision.models import resnet18


@torch.no_grad()
def confusion(loader, weights):
    net = resnet18()
    net.fc = nn.Linear(512, 10)
    net.load_state_dict(weights)
    net.cuda().eval()
    scores, truth = [], []
    for x, y in loader:
        scores.append(net(x.cuda()))
        truth.append(y.cuda())
    guess = torch.cat(scores).argmax(1)
    table = torch.bincount(torch.cat(truth) * 10 + guess, minlength=100).view(10, 10)
    print(table.cpu().numpy())
