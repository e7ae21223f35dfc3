import torch
from torch import nn, optim


def train(gen, disc, loader, device, lr=3e-4):
    opt_g = optim.Adam(gen.parameters(), lr=lr)
    opt_d = optim.Adam(disc.parameters(), lr=lr)
    criterion = nn.BCELoss()
    for real, _ in loader:
        real = real.view(-1, 784).to(device)
        fake = gen(torch.randn(real.size(0), 64, device=device))
        d_real = disc(real).view(-1)
        d_fake = disc(fake).view(-1)  # expect: GPU203
        loss_d = (criterion(d_real, torch.ones_like(d_real)) + criterion(d_fake, torch.zeros_like(d_fake))) / 2
        disc.zero_grad()
        loss_d.backward(retain_graph=True)
        opt_d.step()

        out = disc(fake).view(-1)
        loss_g = criterion(out, torch.ones_like(out))
        gen.zero_grad()
        loss_g.backward()
        opt_g.step()
