import torch as th
import torch.nn.functional as F


def elbo(vae, x):
    mu, logvar = vae.encode(x)
    z = mu + th.exp(0.5 * logvar) * th.randn_like(mu)
    xr = vae.decode(z)
    rec = F.mse_loss(xr, x, reduction="sum") / x.size(0)
    kl = -0.5 * th.sum(1 + logvar - mu**2 - logvar.exp()) / x.size(0)
    return rec, kl


def fit(vae, data, beta=4.0, epochs=100):
    vae.to("cuda")
    opt = th.optim.Adam(vae.parameters(), 1e-4)
    history = {"loss": [], "rec": [], "kl": []}
    for _ in range(epochs):
        for x in data:
            rec, kl = elbo(vae, x.to("cuda"))
            loss = rec + beta * kl
            opt.zero_grad()
            loss.backward()
            opt.step()
            history["loss"].append(loss.item())
            history["rec"].append(rec)  # expect: GPU101
            history["kl"].append(kl)  # expect: GPU101
    return history
