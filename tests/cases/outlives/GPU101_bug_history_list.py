from torch import nn, optim
import torch
import matplotlib.pyplot as plt

net = nn.Sequential(nn.Linear(1, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1)).cuda()
opt = optim.Adam(net.parameters(), lr=1e-3)
mse = nn.MSELoss()

xs = torch.linspace(-3, 3, 2048, device="cuda").unsqueeze(1)
ys = torch.sin(2 * xs) + 0.1 * torch.randn_like(xs)

hist = []
for it in range(20000):
    idx = torch.randint(0, 2048, (256,), device="cuda")
    cost = mse(net(xs[idx]), ys[idx])
    opt.zero_grad()
    cost.backward()
    opt.step()
    hist.append(cost)  # expect: GPU101
    if it % 1000 == 0:
        print(it, cost.item())

plt.plot([c.item() for c in hist])
plt.savefig("loss.png")
