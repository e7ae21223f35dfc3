# Two optimizers in one iteration: one step, not two.
# forwards-per-step: 5
import torch
from setting import batch, device
from torch import nn

generator = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 32)).to(device)
critic = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1)).to(device)
of_generator = torch.optim.Adam(generator.parameters(), lr=1e-3)
of_critic = torch.optim.Adam(critic.parameters(), lr=1e-3)
for _ in range(1000):
    real, _ = batch()
    noise = torch.randn(16, 8).to(device)
    fake = generator(noise)
    loss = critic(fake.detach()).mean() - critic(real).mean()
    of_critic.zero_grad()
    loss.backward()
    of_critic.step()
    loss = -critic(generator(noise)).mean()
    of_generator.zero_grad()
    loss.backward()
    of_generator.step()
