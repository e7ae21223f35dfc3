"""A program has a step that nothing calls any more, beside the one that is run."""

# file: trainer.py
import torch
from torch import nn


class Trainer:
    def __init__(self, generator: nn.Module, critic: nn.Module):
        self.generator, self.critic = generator.cuda(), critic.cuda()
        self.by_generator = torch.optim.Adam(self.generator.parameters(), 1e-4)
        self.by_critic = torch.optim.Adam(self.critic.parameters(), 1e-4)

    def critics_step(self, real):
        made = self.generator(torch.randn(len(real), 64, device="cuda"))
        loss = self.critic(made).mean() - self.critic(real).mean()  # expect: GPU203
        self.by_critic.zero_grad()
        loss.backward()
        self.by_critic.step()

    def former_step(self, real):
        made = self.generator(torch.randn(len(real), 64, device="cuda"))
        loss = self.critic(made).square().mean() - self.critic(real).mean()  # note: GPU203
        self.by_critic.zero_grad()
        loss.backward()
        self.by_critic.step()

    def generators_step(self, number):
        loss = -self.critic(self.generator(torch.randn(number, 64, device="cuda"))).mean()
        self.by_generator.zero_grad()
        loss.backward()
        self.by_generator.step()


# file: run.py
from torch import nn
from trainer import Trainer


def main(loader):
    trainer = Trainer(nn.Linear(64, 64), nn.Linear(64, 1))
    for real in loader:
        trainer.critics_step(real.cuda())
        trainer.generators_step(len(real))


if __name__ == "__main__":
    main([])
