"""A feature extraction under no_grad whose hook piles up every batch's activation on the GPU; one detaches only."""

import torch


def features(model, loader):
    grabbed = []
    handle = model.avgpool.register_forward_hook(lambda m, i, o: grabbed.append(o.flatten(1)))  # expect: GPU105
    model.cuda().eval()
    with torch.no_grad():
        for images, _ in loader:
            model(images.cuda())
    handle.remove()
    return torch.cat(grabbed)


class Watch:
    def __init__(self, network):
        self.seen = {}
        for name, layer in network.named_modules():
            layer.register_forward_hook(self.watch(name))

    def watch(self, name):
        def hook(layer, inputs, output):
            self.seen.setdefault(name, []).append(output.detach())  # expect: GPU105

        return hook


def train(network: torch.nn.Module, loader, optimizer):
    watch = Watch(network)
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(network(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return watch
