# The loss becomes a number only in some rounds, or only after it has been kept.
# file: agent.py
import torch
import torch.nn as nn
import torch.nn.functional as F


class Agent:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 4)).cuda()
        self.optimizer = torch.optim.Adam(self.net.parameters())

    def update(self, x, y):
        loss = F.mse_loss(self.net(x.cuda()), y.cuda())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss  # maybe: GPU101


# file: main.py
from agent import Agent


def main(batches):
    agent = Agent()
    losses = []
    for x, y in batches:
        loss = agent.update(x, y)
        if len(losses) % 100 == 0:
            loss = loss.item()
            print(loss)
        losses.append(loss)  # expect: GPU101
