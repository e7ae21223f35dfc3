"""Two networks of a package that is not seen, one of which a helper is given for its penalty: the other's fakes are only cut."""

import torch
from networks import Critic, Generator


def penalty(critic, real, fake):
    mixed = ((real + fake) / 2).requires_grad_(True)
    scores = critic(mixed)
    slopes = torch.autograd.grad(scores, mixed, torch.ones_like(scores), create_graph=True)[0]
    return ((slopes.flatten(1).norm(2, 1) - 1) ** 2).mean()


def train(loader, options):
    generator, critic = Generator(options).cuda(), Critic(options).cuda()
    first, second = torch.optim.Adam(generator.parameters()), torch.optim.Adam(critic.parameters())
    for number, real in enumerate(loader):
        real = real.cuda()
        fake = generator(torch.randn(len(real), 100, device="cuda"))  # expect: GPU202
        loss = critic(fake.detach()).mean() - critic(real).mean() + 10 * penalty(critic, real, fake.data)
        second.zero_grad()
        loss.backward()
        second.step()
        if number % 5 == 0:
            gain = -critic(generator(torch.randn(len(real), 100, device="cuda"))).mean()  # low: GPU202
            first.zero_grad()
            gain.backward()
            first.step()
