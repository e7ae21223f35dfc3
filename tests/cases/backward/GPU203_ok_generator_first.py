import torch
from torch import nn


def train(generator, discriminator, loader, opt_G, opt_D, latent):
    loss_fn = nn.BCELoss()
    for imgs, _ in loader:
        real = imgs.cuda()
        valid = torch.ones(len(real), 1, device="cuda")
        fake = torch.zeros(len(real), 1, device="cuda")

        opt_G.zero_grad()
        gen_imgs = generator(torch.randn(len(real), latent, device="cuda"))
        g_loss = loss_fn(discriminator(gen_imgs), valid)
        g_loss.backward()
        opt_G.step()

        opt_D.zero_grad()
        d_loss = (loss_fn(discriminator(real), valid) + loss_fn(discriminator(gen_imgs.detach()), fake)) / 2
        d_loss.backward()
        opt_D.step()
