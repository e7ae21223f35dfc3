"""One of the methods of that name goes backward through what it is given, to refine it: the network may need its graph."""

# file: refining.py
import torch


class Restoring:
    def __init__(self, std):
        self.std = std

    def restore(self, x):
        return x * self.std


class Refining:
    def __init__(self, offset):
        self.offset = offset.requires_grad_(True)
        self.opt = torch.optim.SGD([self.offset], lr=0.1)

    def restore(self, x):
        y = x + self.offset
        self.opt.zero_grad()
        y.pow(2).mean().backward()
        self.opt.step()
        return y
# file: engine.py
import torch


class Engine:
    def __init__(self, model, scaler, device):
        self.model = model.to(device)
        self.scaler = scaler
        self.opt = torch.optim.Adam(self.model.parameters())

    def step(self, x, y):
        self.model.train()
        loss = (self.scaler.restore(self.model(x)) - y).abs().mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()

    def check(self, x, y):
        self.model.eval()
        predicted = self.scaler.restore(self.model(x))  # low: GPU201
        return (predicted - y).abs().mean().item()
