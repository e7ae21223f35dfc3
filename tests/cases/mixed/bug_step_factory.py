import torch
from torch import nn


def make_train_step(model, loss_fn, optimizer):
    def perform_train_step(x, y):
        model.train()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return perform_train_step


def main(loader):
    model = nn.Sequential(nn.Linear(1, 1)).cuda()
    step = make_train_step(model, nn.MSELoss(), torch.optim.SGD(model.parameters(), 0.1))
    losses = []
    for epoch in range(1000):
        for x, y in loader:
            loss = step(x.cuda(), y.cuda())
            losses.append(loss)  # expect: GPU101
    return losses
