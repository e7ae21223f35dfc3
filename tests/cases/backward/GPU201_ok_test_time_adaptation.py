import torch
from torch import nn


def entropy(logits):
    return -(logits.softmax(1) * logits.log_softmax(1)).sum(1)


class Tent(nn.Module):
    def __init__(self, model, optimizer, steps=1):
        super().__init__()
        self.model, self.optimizer, self.steps = model, optimizer, steps

    def forward(self, x):
        for _ in range(self.steps):
            outputs = self.adapt(x)
        return outputs

    @torch.enable_grad()
    def adapt(self, x):
        outputs = self.model(x)
        loss = entropy(outputs).mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return outputs


def evaluate(model: Tent, loader):
    acc = 0
    with torch.no_grad():
        for x, y in loader:
            acc += (model(x.cuda()).argmax(1) == y.cuda()).sum().item()
    return acc
