import torch
from torch import nn


class Worker:
    def __init__(self, model, criterion, optimizer):
        self.model, self.criterion, self.optimizer = model.cuda(), criterion, optimizer
        self.ooms = 0

    def train_step(self, sample):
        self.model.train()
        self.optimizer.zero_grad()
        try:
            net_out = self.model(**sample["net_input"])
            loss = self.criterion(net_out, sample["target"])
            loss.backward()
        except RuntimeError as e:
            if "out of memory" in str(e):
                print("| WARNING: ran out of memory, skipping batch")
                self.ooms += 1
                for p in self.model.parameters():  # expect: GPU402@c
                    if p.grad is not None:
                        del p.grad  # expect: GPU402@c
                torch.cuda.empty_cache()  # expect: GPU402@c
                return None
            else:
                raise e
        self.optimizer.step()
        return loss.item()
