import torch
import torch.nn.functional as F


def joint_step(net_a, net_b, opt_a, opt_b, x, y):
    loss_a = F.cross_entropy(net_a(x), y)
    loss_b = F.cross_entropy(net_b(x), y)
    opt_a.zero_grad()
    loss_a.backward(retain_graph=True)  # expect: GPU301
    opt_a.step()
    opt_b.zero_grad()
    loss_b.backward()
    opt_b.step()
    return loss_a.item(), loss_b.item()


def train(net_a, net_b, loader):
    net_a.cuda()
    net_b.cuda()
    opt_a = torch.optim.Adam(net_a.parameters())
    opt_b = torch.optim.Adam(net_b.parameters())
    for x, y in loader:
        print(joint_step(net_a, net_b, opt_a, opt_b, x.cuda(), y.cuda()))
