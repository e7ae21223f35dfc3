import torch
from torch import nn, optim

bce = nn.BCELoss()


def train(gen, dis, loader, device):
    opt_g = optim.Adam(gen.parameters(), 2e-4)
    opt_d = optim.Adam(dis.parameters(), 2e-4)
    for real, _ in loader:
        real = real.to(device)
        z = torch.randn(real.size(0), 100, device=device)
        fake = gen(z)
        p_real = dis(real).view(-1)
        p_fake = dis(fake.detach()).view(-1)
        loss_d = (bce(p_real, torch.ones_like(p_real)) + bce(p_fake, torch.zeros_like(p_fake))) / 2
        opt_d.zero_grad()
        loss_d.backward(retain_graph=True)  # expect: GPU301
        opt_d.step()

        p = dis(fake).view(-1)  # low: GPU202
        loss_g = bce(p, torch.ones_like(p))
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
