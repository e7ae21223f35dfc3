"""A few local steps are unrolled to be differentiated as a whole: the gradient goes to the picture they started from."""
import torch
from torch import nn


class Functional(nn.Module):
    def __init__(self, template):
        super().__init__()
        self.template = template

    def forward(self, weights, inputs):
        return torch.func.functional_call(self.template, weights, (inputs,))


class Matching:
    def __init__(self, net, rate, steps):
        self.net = Functional(net)
        self.start = dict(net.named_parameters())
        self.rate = rate
        self.steps = steps
        self.loss_fn = nn.CrossEntropyLoss()

    def local_update(self, picture, labels):
        weights = [p.clone() for p in self.start.values()]
        for step in range(self.steps):
            loss = self.loss_fn(self.net(weights, picture), labels[step])
            grads = torch.autograd.grad(loss, weights, create_graph=True)
            weights = [w - self.rate * g for w, g in zip(weights, grads)]
        return [w - start for w, start in zip(weights, self.start.values())]

    def attack(self, picture, labels, wanted):
        optimizer = torch.optim.Adam([picture])
        for _ in range(1000):
            optimizer.zero_grad()
            found = self.local_update(picture, labels)
            distance = sum((a - b).pow(2).sum() for a, b in zip(found, wanted))
            distance.backward()
            optimizer.step()
