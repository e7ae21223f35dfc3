"""What a hook keeps is cut only where it is read: until then it keeps the layers before it."""

import torch
from torch import nn


class Watched:
    def __init__(self, net):
        self.net = net.cuda()
        self.kept = {}
        for name, module in net.named_children():
            module.register_forward_hook(self.hook(name))

    def hook(self, name):
        def keep(module, given, output):
            self.kept[name] = output.to("cuda:1")  # expect: GPU105

        return keep

    def figures(self):
        parts = [self.kept[name].flatten(1) for name in sorted(self.kept)]
        joined = torch.cat(parts, 1)
        return joined.detach().cpu().std(0)


def watch(net, batches):
    watched = Watched(net)
    for x in batches:
        out = watched.net(x.cuda())  # maybe: GPU201
        print(out.mean().item(), watched.figures())


watch(nn.Sequential(nn.Linear(512, 4096), nn.ReLU(), nn.Linear(4096, 512)), torch.rand(10, 64, 512))
