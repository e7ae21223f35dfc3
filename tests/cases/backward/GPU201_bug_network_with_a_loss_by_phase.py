"""A network is wrapped together with its loss; one function runs it in both phases, and goes backward in one of them."""

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
        if phase == "train":
            wrapped.train()
        else:
            wrapped.eval()
        total = 0.0
        for batch in loader:
            batch = {name: value.cuda() for name, value in batch.items()}
            output, loss, parts = wrapped(batch)  # expect: GPU201
            loss = loss.mean()
            if phase == "train":
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            total += loss.item()
        return total

    def train(self, loader):
        return self.run_epoch("train", loader)

    def val(self, loader):
        return self.run_epoch("val", loader)
