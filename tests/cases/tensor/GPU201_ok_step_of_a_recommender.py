"""The same, where the method belongs to a tokenizer, where grad is off, and where the project's method sees to that itself."""

# file: ranking.py
import torch


class Ranker:
    def __init__(self, model, tokenizer, device="cuda"):
        self.model = model.to(device)
        self.tokenizer = tokenizer
        self.device = device

    def texts(self, loader):
        self.model.eval()
        found = []
        for names in loader:
            found.append(self.tokenizer.encode(names))
        return found

    def rank(self, loader):
        self.model.eval()
        hits = 0
        for users, items in loader:
            with torch.inference_mode():
                scores = self.model.predict_items(users.to(self.device))
            hits += (scores.argmax(1).cpu() == items).sum().item()
        return hits

    def best(self, loader):
        self.model.eval()
        return [self.model.predict_best(users.to(self.device)).argmax(1).tolist() for users in loader]


# file: network.py
import torch
from torch import nn


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(64, 1000)

    @torch.no_grad()
    def predict_best(self, users):
        return self.head(users)
