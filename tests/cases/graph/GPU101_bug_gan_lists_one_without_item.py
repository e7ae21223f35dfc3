import torch
import torch.nn as nn


def train_gan(netG, netD, dataloader, num_epochs, nz, device):
    criterion = nn.BCELoss()
    optimizerD = torch.optim.Adam(netD.parameters(), lr=2e-4, betas=(0.5, 0.999))
    optimizerG = torch.optim.Adam(netG.parameters(), lr=2e-4, betas=(0.5, 0.999))
    G_losses, D_losses = [], []
    for epoch in range(num_epochs):
        for i, data in enumerate(dataloader, 0):
            netD.zero_grad()
            real = data[0].to(device)
            b = real.size(0)
            label = torch.full((b,), 1.0, device=device)
            errD_real = criterion(netD(real).view(-1), label)
            errD_real.backward()
            with torch.no_grad():
                fake = netG(torch.randn(b, nz, 1, 1, device=device))
            label.fill_(0.0)
            errD_fake = criterion(netD(fake).view(-1), label)
            errD_fake.backward()
            errD = errD_real + errD_fake
            optimizerD.step()

            netG.zero_grad()
            label.fill_(1.0)
            fake = netG(torch.randn(b, nz, 1, 1, device=device))
            errG = criterion(netD(fake).view(-1), label)
            errG.backward()
            optimizerG.step()
            D_losses.append(errD.item())
            G_losses.append(errG)  # expect: GPU101
    return G_losses, D_losses
