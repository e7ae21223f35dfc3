import torch


def gradient_penalty(critic, real, fake):
    eps = torch.rand(len(real), 1, 1, 1, device=real.device)
    mix = (eps * real + (1 - eps) * fake.detach()).requires_grad_(True)
    (g,) = torch.autograd.grad(critic(mix).sum(), mix, create_graph=True, retain_graph=True)
    return (g.flatten(1).norm(dim=1) - 1).pow(2).mean()


def train(critic, G, loader, opt, nz):
    for real in loader:
        real = real.cuda()
        with torch.no_grad():
            fake = G(torch.randn(len(real), nz, device="cuda"))
        loss = critic(fake).mean() - critic(real).mean() + 10 * gradient_penalty(critic, real, fake)
        opt.zero_grad()
        loss.backward()
        opt.step()
