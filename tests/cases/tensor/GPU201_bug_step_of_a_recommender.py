"""The network comes from outside; what its method does is not to be seen, but the trainer puts it into eval mode and takes numbers."""

import torch


class Ranker:
    def __init__(self, model, device="cuda"):
        self.model = model.to(device)
        self.device = device

    def rank(self, loader):
        self.model.eval()
        hits = 0
        for users, items in loader:
            scores = self.model.predict_items(users.to(self.device))  # low: GPU201
            hits += (scores.argmax(1).cpu() == items).sum().item()
        return hits


def main(model, loader):
    print(Ranker(model).rank(loader), torch.cuda.max_memory_allocated())
