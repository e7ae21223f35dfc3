"""The inner steps of a meta-learner change a part of the network, which its next forward reads: the outer gradient goes
through all of them."""
# file: network.py
import torch
from torch import nn


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(64 + 8, 64)
        self.out = nn.Linear(64, 5)
        self.reset()

    def reset(self):
        self.context = torch.zeros(8, requires_grad=True, device="cuda")

    def forward(self, x):
        x = torch.cat((x, self.context.expand(x.shape[0], -1)), dim=1)
        return self.out(torch.relu(self.hidden(x)))

# file: run.py
import torch
import torch.nn.functional as F
from network import Network


def run(tasks, steps, rate):
    model = Network().cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for task in tasks:
        model.reset()
        for _ in range(steps):
            made = model(task.shown)
            loss = F.cross_entropy(made, task.wanted)
            (gradient,) = torch.autograd.grad(loss, model.context, create_graph=True)
            model.context = model.context - rate * gradient
        outer = F.cross_entropy(model(task.asked), task.answers)
        optimizer.zero_grad()
        outer.backward()
        optimizer.step()
