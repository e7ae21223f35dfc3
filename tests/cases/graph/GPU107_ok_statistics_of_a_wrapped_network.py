"""The statistics of a network are handed features without a graph, through what wraps it for several GPUs."""

import torch
from torch import nn


class Statistics(nn.Module):
    def __init__(self, buckets, width):
        super().__init__()
        self.register_buffer("mean", torch.zeros(buckets, width))

    def take_in(self, features, labels):
        for label in torch.unique(labels):
            current = features[labels == label].mean(0)
            self.mean[int(label)] = 0.1 * current + 0.9 * self.mean[int(label)]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.statistics = nn.Linear(512, 512), Statistics(100, 512)

    def forward(self, x):
        return self.body(x)


def main(loader):
    net = nn.DataParallel(Net()).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(90):
        for x, y in loader:
            loss = nn.functional.mse_loss(net(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():  # maybe: GPU406
            features = torch.cat([net(x.cuda()).cpu() for x, _ in loader]).cuda()
        net.module.statistics.take_in(features, torch.cat([y for _, y in loader]).cuda())
