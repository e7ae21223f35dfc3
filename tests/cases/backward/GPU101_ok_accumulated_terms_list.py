import torch
import torch.nn.functional as F


class ContrastiveLoss(torch.nn.Module):
    def __init__(self, temps=(0.1, 0.2, 0.5)):
        super().__init__()
        self.temps = temps

    def forward(self, za, zb):
        terms = []
        target = torch.arange(za.size(0), device=za.device)
        for t in self.temps:
            sim = za @ zb.t() / t
            terms.append(F.cross_entropy(sim, target))
        return torch.stack(terms).mean()


def train(net, loader, opt):
    crit = ContrastiveLoss()
    for a, b in loader:
        za, zb = F.normalize(net(a.cuda())), F.normalize(net(b.cuda()))
        loss = crit(za, zb)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print("%.3f" % loss)
