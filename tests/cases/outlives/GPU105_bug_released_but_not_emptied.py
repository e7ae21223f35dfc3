"""The hooks are removed when the work on a picture is done; what they have stored stays with objects that are kept."""

import torch
from torch import nn


class Attribution:
    def __init__(self, net: nn.Module, names):
        self.net, self.stored = net, {}
        layers = dict(net.named_modules())
        self.handles = [layers[n].register_forward_hook(self._store(n)) for n in names]

    def _store(self, name):
        def hook(module, args, output):
            self.stored[name] = output  # expect: GPU105|GPU101@k

        return hook

    def of(self, picture, label):
        score = self.net(picture)[0, label]
        keys = list(self.stored)
        slopes = torch.autograd.grad(score, [self.stored[k] for k in keys], create_graph=True)  # expect: GPU302
        return {k: (g * self.stored[k]).sum().item() for k, g in zip(keys, slopes)}  # note: GPU504

    def release(self):
        for handle in self.handles:
            handle.remove()  # expect: GPU105|GPU101@k


def main(net, pictures):
    net.cuda().eval()
    done = []
    for picture, label in pictures:
        attribution = Attribution(net, ["layer3", "layer4"])
        print(attribution.of(picture.unsqueeze(0).cuda(), label))
        attribution.release()
        done.append(attribution)  # expect: GPU105|GPU101@k
    print(len(done))
