import torch
from torch import nn

sizes, hooked = {}, set()


def train(net, loader, optimizer):
    for step, (inputs, targets) in enumerate(loader):
        for name, layer in net.named_modules():
            if name not in hooked:
                hooked.add(name)
                layer.register_forward_hook(lambda one, given, out, name=name: sizes.update({name: out.shape}))
        for name, layer in net.named_modules():
            if step == 0:
                layer.register_forward_hook(lambda one, given, out, name=name: sizes.update({name: out.shape}))
        loss = nn.functional.cross_entropy(net(inputs.cuda()), targets.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
