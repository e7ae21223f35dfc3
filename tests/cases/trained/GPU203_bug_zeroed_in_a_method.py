import torch
from torch import nn


class Trainer:
    """Networks that give attention maps as well; one method zeroes both."""

    def __init__(self, generator: nn.Module, critic: nn.Module, loader):
        self.G, self.D = generator.cuda(), critic.cuda()
        self.loader = loader
        self.g_opt = torch.optim.Adam(filter(lambda p: p.requires_grad, self.G.parameters()), 1e-4)
        self.d_opt = torch.optim.Adam([p for p in self.D.parameters() if p.requires_grad], 4e-4)

    def zero(self):
        self.g_opt.zero_grad()
        self.d_opt.zero_grad()

    def train(self):
        for real in self.loader:
            real = real.cuda()
            on_real, _ = self.D(real)
            made, maps = self.G(torch.randn(len(real), 64, device="cuda"))
            on_made, _ = self.D(made)  # expect: GPU203
            loss = torch.relu(1 - on_real).mean() + torch.relu(1 + on_made).mean()
            self.zero()
            loss.backward()
            self.d_opt.step()

            made, maps = self.G(torch.randn(len(real), 64, device="cuda"))
            judged, _ = self.D(made)  # low: GPU202
            self.zero()
            (-judged.mean()).backward()
            self.g_opt.step()
