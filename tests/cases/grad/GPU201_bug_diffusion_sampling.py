import torch as th
from tqdm.auto import trange


class DDPM:
    def __init__(self, eps_model, betas, device):
        self.eps_model = eps_model.to(device)
        self.betas = betas.to(device)
        self.alphas = 1 - self.betas
        self.abar = th.cumprod(self.alphas, 0)
        self.device = device

    def loss(self, x0):
        t = th.randint(0, len(self.betas), (x0.size(0),), device=self.device)
        a = self.abar[t].view(-1, 1, 1, 1)
        eps = th.randn_like(x0)
        return (self.eps_model(a.sqrt() * x0 + (1 - a).sqrt() * eps, t) - eps).pow(2).mean()

    def sample(self, n, size=64):
        self.eps_model.eval()
        x = th.randn(n, 3, size, size, device=self.device)
        for i in trange(len(self.betas) - 1, -1, -1):
            t = th.full((n,), i, device=self.device, dtype=th.long)
            eps = self.eps_model(x, t)  # note: GPU201  # maybe: GPU101, GPU103
            x = (x - self.betas[i] / (1 - self.abar[i]).sqrt() * eps) / self.alphas[i].sqrt()  # maybe: GPU101, GPU103
            if i > 0:
                x = x + self.betas[i].sqrt() * th.randn_like(x)  # maybe: GPU101, GPU103
        self.eps_model.train()
        return x.clamp(-1, 1).detach().cpu()


def train(ddpm, loader, epochs):
    opt = th.optim.Adam(ddpm.eps_model.parameters(), 2e-4)
    for _ in range(epochs):
        for x0, _ in loader:
            l = ddpm.loss(x0.to(ddpm.device))
            opt.zero_grad()
            l.backward()
            opt.step()
        ddpm.sample(16)
