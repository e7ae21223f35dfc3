import torch
from torch import nn


class Trainer:
    """The generator keeps the gradients of the critic's step: they are meant."""

    def __init__(self, generator: nn.Module, critic: nn.Module, loader):
        self.G, self.D = generator.cuda(), critic.cuda()
        self.loader = loader
        self.g_opt = torch.optim.Adam(self.G.parameters(), 1e-4)
        self.d_opt = torch.optim.Adam(self.D.parameters(), 4e-4)

    def reset(self, everything=False):
        self.d_opt.zero_grad()
        if everything:
            self.g_opt.zero_grad()

    def train(self):
        for real in self.loader:
            made, maps = self.G(torch.randn(len(real), 64, device="cuda"))
            on_made, _ = self.D(made)
            loss = self.D(real.cuda())[0].mean() - on_made.mean()
            self.reset()
            loss.backward()
            self.d_opt.step()
            self.g_opt.step()


class Thawing(Trainer):
    """Gradients of the generator are switched by hand."""

    def train(self):
        for real in self.loader:
            for p in self.G.parameters():
                p.requires_grad = False
            made, maps = self.G(torch.randn(len(real), 64, device="cuda"))
            on_made, _ = self.D(made)
            self.d_opt.zero_grad()
            self.g_opt.zero_grad()
            on_made.mean().backward()
            self.d_opt.step()
            for p in self.G.parameters():
                p.requires_grad = True
            self.g_opt.zero_grad()
            self.D(self.G(torch.randn(8, 64, device="cuda"))[0])[0].mean().backward()
            self.g_opt.step()
