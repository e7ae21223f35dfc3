import torch
from torch import nn


class Fitter:
    def __init__(self, net, device):
        self.net, self.device = net.to(device), device
        self.crit = nn.CrossEntropyLoss()
        self.opt = torch.optim.Adam(net.parameters())
        self.val_loss = 0

    def loss(self, batch):
        x, y = batch
        return self.crit(self.net(x.to(self.device)), y.to(self.device))  # expect: GPU201@f

    def train_epoch(self, dl):
        self.net.train()
        for b in dl:
            self.opt.zero_grad()
            self.loss(b).backward()
            self.opt.step()

    def val_epoch(self, dl):
        self.net.eval()
        self.val_loss = 0
        for b in dl:
            self.val_loss += self.loss(b)  # expect: GPU201@f, GPU101
        return float(self.val_loss) / len(dl)
