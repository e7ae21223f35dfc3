import torch
from torch import nn


def train(encoder, head_a, head_b, loader, device="cuda"):
    opt_a = torch.optim.Adam(list(encoder.parameters()) + list(head_a.parameters()))
    opt_b = torch.optim.Adam(head_b.parameters())
    mse, ce = nn.MSELoss(), nn.CrossEntropyLoss()
    for x, y, c in loader:
        z = encoder(x.to(device))
        la = mse(head_a(z), y.to(device))
        lb = ce(head_b(z), c.to(device))
        opt_a.zero_grad()
        opt_b.zero_grad()
        la.backward(retain_graph=True)
        lb.backward()
        opt_a.step()
        opt_b.step()
