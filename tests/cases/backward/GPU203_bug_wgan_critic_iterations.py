import torch


def train(gen, critic, loader, z_dim=128, n_critic=5):
    opt_c = torch.optim.RMSprop(critic.parameters(), 5e-5)
    opt_g = torch.optim.RMSprop(gen.parameters(), 5e-5)
    for real in loader:
        real = real.cuda()
        for _ in range(n_critic):
            fake = gen(torch.randn(real.size(0), z_dim, device="cuda"))
            loss_c = critic(fake).mean() - critic(real).mean()  # expect: GPU203
            critic.zero_grad()
            loss_c.backward()
            opt_c.step()
            for p in critic.parameters():
                p.data.clamp_(-0.01, 0.01)
        loss_g = -critic(gen(torch.randn(real.size(0), z_dim, device="cuda"))).mean()
        gen.zero_grad()
        loss_g.backward()
        opt_g.step()
