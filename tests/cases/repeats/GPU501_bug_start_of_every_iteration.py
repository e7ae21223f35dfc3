import torch as th
import torch.nn.functional as F


def main(G, D, loader, opt_g, opt_d, dev):
    for it, (hr, lr) in enumerate(loader):
        th.cuda.empty_cache()  # expect: GPU501
        hr, lr = hr.to(dev), lr.to(dev)
        with th.no_grad():
            sr = G(lr)
        d = F.softplus(D(sr)).mean() + F.softplus(-D(hr)).mean()
        opt_d.zero_grad()
        d.backward()
        opt_d.step()

        sr = G(lr)
        g = F.l1_loss(sr, hr) + 1e-3 * F.softplus(-D(sr)).mean()
        opt_g.zero_grad()
        g.backward()
        opt_g.step()
        if it % 100 == 0:
            print(it, d.item(), g.item())
