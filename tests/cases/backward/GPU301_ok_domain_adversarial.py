import torch
from torch import nn


def train(feat, cls, dom, src, tgt, opt_f, opt_d, device):
    ce = nn.CrossEntropyLoss()
    for (xs, ys), (xt, _) in zip(src, tgt):
        f_s, f_t = feat(xs.to(device)), feat(xt.to(device))
        task = ce(cls(f_s), ys.to(device))
        d = torch.cat([dom(f_s), dom(f_t)])
        lab = torch.cat([torch.zeros(len(xs)), torch.ones(len(xt))]).long().to(device)
        adv = -ce(d, lab)
        opt_f.zero_grad()
        task.backward(retain_graph=True)
        adv.backward()
        opt_f.step()

        d = torch.cat([dom(f_s.detach()), dom(f_t.detach())])
        loss_d = ce(d, lab)
        opt_d.zero_grad()
        loss_d.backward()
        opt_d.step()
