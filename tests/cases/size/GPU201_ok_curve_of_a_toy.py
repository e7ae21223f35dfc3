"""A network of one input and sixteen hidden units, drawn at a thousand points after it has been fitted."""

import matplotlib.pyplot as plt
import torch
from torch import nn

net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1)).cuda()
opt = torch.optim.LBFGS(net.parameters(), max_iter=200)
x = torch.linspace(-3, 3, 64, device="cuda").unsqueeze(1)
y = torch.sin(2 * x) + 0.1 * torch.randn_like(x)


def closure():
    opt.zero_grad()
    loss = nn.functional.mse_loss(net(x), y)
    loss.backward()
    return loss


opt.step(closure)
net.eval()
line = torch.linspace(-4, 4, 1000, device="cuda").unsqueeze(1)
plt.plot(line.cpu().numpy(), net(line).detach().cpu().numpy())
plt.scatter(x.cpu().numpy(), y.cpu().numpy())
plt.savefig("fit.png")
