import torch
from torch import nn


class Trainer:
    def __init__(self, model: nn.Module, lr):
        self.model = model.cuda()
        self.opt = torch.optim.SGD(model.parameters(), lr)

    def step(self, x, y):
        loss = nn.functional.mse_loss(self.model(x), y)
        loss.backward()
        self.opt.step()
        self.model.zero_grad(set_to_none=False)  # expect: GPU304
        return loss.item()
