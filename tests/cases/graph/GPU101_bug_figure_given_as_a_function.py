"""The figure that is handed in is a smooth one: the mean margin between the right class and the best of the others."""

import torch
from torch import nn


class Margin:
    def __call__(self, scores, target):
        right = scores.gather(1, target.unsqueeze(1))
        others = scores.scatter(1, target.unsqueeze(1), float("-inf"))
        return (right - others.max(1, keepdim=True)[0]).mean()


def fit(net, loader, optimizer, loss_function, figure=None):
    net.cuda().train()
    loss_sum, figure_sum = 0.0, 0.0
    for x, y in loader:
        scores, y = net(x.cuda()), y.cuda()
        loss = loss_function(scores, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss_sum += loss.item()
        if figure is not None:
            figure_sum += figure(scores, y)  # expect: GPU101
    return loss_sum / len(loader), float(figure_sum) / len(loader)


def main(build, loader):
    net = build()
    optimizer = torch.optim.SGD(net.parameters(), 0.1, nesterov=True, momentum=0.9)
    for _ in range(90):
        print(fit(net, loader, optimizer, nn.CrossEntropyLoss(), figure=Margin()))
