import torch
import torch.nn.functional as F


def train_step(gen, disc, g_opt, d_opt, lr_img, hr_img):
    with torch.no_grad():
        sr = gen(lr_img)
    d_real = disc(hr_img)
    d_fake = disc(sr)
    d_loss = F.softplus(-d_real).mean() + F.softplus(d_fake).mean()
    d_opt.zero_grad()
    d_loss.backward()
    d_opt.step()

    sr = gen(lr_img)
    g_loss = F.l1_loss(sr, hr_img) + 1e-3 * F.softplus(-disc(sr)).mean()
    g_opt.zero_grad()
    g_loss.backward()
    g_opt.step()
    return g_loss, d_loss.item()


def run(gen, disc, loader, epochs, device):
    g_opt = torch.optim.Adam(gen.parameters(), 1e-4)
    d_opt = torch.optim.Adam(disc.parameters(), 1e-4)
    for epoch in range(epochs):
        g_total, d_total = 0.0, 0.0
        for lr_img, hr_img in loader:
            g, d = train_step(gen, disc, g_opt, d_opt, lr_img.to(device), hr_img.to(device))
            g_total += g  # expect: GPU101
            d_total += d
        print(f"{epoch:3d}  G {g_total / len(loader):.4f}  D {d_total / len(loader):.4f}")
