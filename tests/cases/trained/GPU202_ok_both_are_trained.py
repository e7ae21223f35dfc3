import torch
import torch.nn.functional as F


def mutual(net1, net2, loader):
    opt = torch.optim.SGD([*net1.parameters(), *net2.parameters()], 0.1)
    for x, y in loader:
        a, b = net1(x.cuda()), net2(x.cuda())
        kl = F.kl_div(a.log_softmax(1), b.softmax(1).detach(), reduction="batchmean")
        kl = kl + F.kl_div(b.log_softmax(1), a.softmax(1).detach(), reduction="batchmean")
        loss = kl + F.cross_entropy(a, y.cuda()) + F.cross_entropy(b, y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
