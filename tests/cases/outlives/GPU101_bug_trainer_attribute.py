import torch
from torch import nn


class Trainer:
    def __init__(self, model, train_dl, lr=1e-3, device="cuda:0"):
        self.device = torch.device(device)
        self.model = model.to(self.device)
        self.train_dl = train_dl
        self.optim = torch.optim.Adam(self.model.parameters(), lr=lr)
        self.loss_fn = nn.BCEWithLogitsLoss()
        self.running_loss = 0.0
        self.step = 0

    def train_step(self, batch):
        x, y = (b.to(self.device) for b in batch)
        self.optim.zero_grad()
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        self.optim.step()
        self.running_loss += loss  # expect: GPU101
        self.step += 1

    def fit(self, epochs):
        for epoch in range(epochs):
            for batch in self.train_dl:
                self.train_step(batch)
            print("epoch", epoch, "mean loss", self.running_loss / self.step)
