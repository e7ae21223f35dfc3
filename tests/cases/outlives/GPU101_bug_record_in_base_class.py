import torch
from torch import nn


class Recorder:
    def __init__(self):
        self.curve = []

    def record(self, value):
        self.curve.append(value)


class Experiment(Recorder):
    def __init__(self, net, device):
        super().__init__()
        self.net = net.to(device)
        self.device = device
        self.opt = torch.optim.NAdam(net.parameters())

    def run(self, batches):
        for x, y in batches:
            loss = nn.functional.mse_loss(self.net(x.to(self.device)), y.to(self.device))
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.record(loss)  # expect: GPU101|GPU104
        return sum(float(c) for c in self.curve)
