import torch
from torch import nn

sizes = {}


def train(net, loader, optimizer):
    for inputs, targets in loader:
        for name, layer in net.named_modules():
            if name.startswith("block"):
                layer.register_forward_hook(lambda one, given, out, name=name: sizes.update({name: out.shape}))  # expect: GPU105
        loss = nn.functional.cross_entropy(net(inputs.cuda()), targets.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
