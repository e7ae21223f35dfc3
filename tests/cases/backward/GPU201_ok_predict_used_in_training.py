import torch
from torch import nn


class Matcher:
    def __init__(self, net, device):
        self.net, self.device = net.to(device), device

    def predict(self, a, b):
        za, zb = self.net(a.to(self.device)), self.net(b.to(self.device))
        return nn.functional.cosine_similarity(za, zb)

    def evaluate(self, loader):
        self.net.eval()
        with torch.no_grad():
            return torch.cat([self.predict(a, b).cpu() for a, b, _ in loader])

    def fit(self, loader, epochs):
        opt = torch.optim.Adam(self.net.parameters())
        self.net.train()
        for _ in range(epochs):
            for a, b, y in loader:
                loss = nn.functional.mse_loss(self.predict(a, b), y.to(self.device))
                opt.zero_grad()
                loss.backward()
                opt.step()
