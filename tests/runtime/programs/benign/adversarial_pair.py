# Two optimizers in one iteration: one step, not two.
# forwards-per-step: 5
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def make_model():
    return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4)).to(
        device
    )


def batch():
    return torch.randn(16, 32).to(device), torch.randint(0, 4, (16,)).to(device)


def train():
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


if __name__ == "__main__":
    train()
