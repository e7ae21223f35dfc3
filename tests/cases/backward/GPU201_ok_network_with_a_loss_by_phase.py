"""The same, where grad is on in the phase that trains alone."""

import torch


class NetworkWithLoss(torch.nn.Module):
    def __init__(self, network, loss):
        super().__init__()
        self.network = network
        self.loss = loss

    def forward(self, batch):
        outputs = self.network(batch["input"])
        loss, parts = self.loss(outputs, batch)
        return outputs[-1], loss, parts


class Trainer:
    def __init__(self, network, loss, opt):
        self.wrapped = NetworkWithLoss(network, loss).cuda()
        self.opt = opt

    def run_epoch(self, phase, loader):
        wrapped = self.wrapped
        wrapped.train(phase == "train")
        total = 0.0
        for batch in loader:
            batch = {name: value.cuda() for name, value in batch.items()}
            with torch.set_grad_enabled(phase == "train"):
                output, loss, parts = wrapped(batch)
            loss = loss.mean()
            if phase == "train":
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            total += loss.item()
        return total
