"""The pictures are those of the step that trains the generator."""

import torch
import torch.nn.functional as F
from torchvision.utils import save_image


def train(generator: torch.nn.Module, critic: torch.nn.Module, loader, epochs):
    generator.cuda(), critic.cuda()
    g_opt = torch.optim.Adam(generator.parameters(), 2e-4, (0.5, 0.999))
    c_opt = torch.optim.Adam(critic.parameters(), 2e-4, (0.5, 0.999))
    step = 0
    for _ in range(epochs):
        for real, _ in loader:
            noise = torch.randn(len(real), 128, device="cuda")
            with torch.no_grad():
                fake = generator(noise)
            c_loss = F.softplus(critic(fake)).mean() + F.softplus(-critic(real.cuda())).mean()
            c_opt.zero_grad()
            c_loss.backward()
            c_opt.step()

            drawn = generator(noise)
            g_loss = F.softplus(-critic(drawn)).mean()
            g_opt.zero_grad()
            g_loss.backward()
            g_opt.step()

            step += 1
            if step % 300 == 0:
                save_image(drawn.detach()[:64], f"drawn/{step:06}.png", normalize=True)
