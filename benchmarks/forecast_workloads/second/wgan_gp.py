"""WGAN-GP: a critic and a generator with an optimizer each; the gradient penalty is differentiated twice."""

import argparse

import torch
from torch import autograd, nn

device = torch.device("cuda")


class Generator(nn.Module):
    def __init__(self, noise: int, width: int) -> None:
        super().__init__()

        def block(inputs, outputs):
            return [
                nn.ConvTranspose2d(inputs, outputs, 4, 2, 1, bias=False),
                nn.BatchNorm2d(outputs),
                nn.ReLU(True),
            ]

        self.net = nn.Sequential(
            nn.ConvTranspose2d(noise, width * 8, 4, 1, 0, bias=False),
            nn.BatchNorm2d(width * 8),
            nn.ReLU(True),
            *block(width * 8, width * 4),
            *block(width * 4, width * 2),
            *block(width * 2, width),
            nn.ConvTranspose2d(width, 3, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(self, z):
        return self.net(z)


class Critic(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()

        def block(inputs, outputs):
            return [
                nn.Conv2d(inputs, outputs, 4, 2, 1),
                nn.InstanceNorm2d(outputs, affine=True),
                nn.LeakyReLU(0.2, inplace=True),
            ]

        self.net = nn.Sequential(
            nn.Conv2d(3, width, 4, 2, 1),
            nn.LeakyReLU(0.2, inplace=True),
            *block(width, width * 2),
            *block(width * 2, width * 4),
            *block(width * 4, width * 8),
            nn.Conv2d(width * 8, 1, 4, 1, 0),
        )

    def forward(self, x):
        return self.net(x).view(-1)


def gradient_penalty(critic, real, fake):
    alpha = torch.rand(real.size(0), 1, 1, 1, device=device)
    mixed = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    scores = critic(mixed)
    gradients = autograd.grad(
        scores, mixed, grad_outputs=torch.ones_like(scores), create_graph=True, retain_graph=True
    )[0]
    return ((gradients.view(gradients.size(0), -1).norm(2, dim=1) - 1) ** 2).mean()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--critic-steps", type=int, default=3)
    parser.add_argument("--width", type=int, default=128)
    args = parser.parse_args()
    generator = Generator(128, args.width).to(device)
    critic = Critic(args.width).to(device)
    for module in [*generator.modules(), *critic.modules()]:
        if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
            nn.init.normal_(module.weight, 0.0, 0.02)
    opt_g = torch.optim.Adam(generator.parameters(), lr=1e-4, betas=(0.0, 0.9))
    opt_c = torch.optim.Adam(critic.parameters(), lr=1e-4, betas=(0.0, 0.9))
    fixed = torch.randn(64, 128, 1, 1, device=device)
    for step in range(args.steps):
        for _ in range(args.critic_steps):
            real = (torch.rand(args.batch, 3, 64, 64) * 2 - 1).to(device)
            fake = generator(torch.randn(args.batch, 128, 1, 1, device=device)).detach()
            loss_c = critic(fake).mean() - critic(real).mean() + 10 * gradient_penalty(critic, real, fake)
            critic.zero_grad()
            loss_c.backward()
            opt_c.step()
        fake = generator(torch.randn(args.batch, 128, 1, 1, device=device))
        loss_g = -critic(fake).mean()
        generator.zero_grad()
        loss_g.backward()
        opt_g.step()
        print(step, loss_c.item(), loss_g.item())
    with torch.no_grad():
        samples = generator(fixed).cpu()
    print(samples.shape)


if __name__ == "__main__":
    main()
