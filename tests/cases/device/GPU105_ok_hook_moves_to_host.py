"""Hooks that keep copies on the host, small statistics, or one batch at a time."""

import torch


def features(model, loader):
    grabbed, means, latest = [], [], []
    model.avgpool.register_forward_hook(lambda m, i, o: grabbed.append(o.flatten(1).cpu()))
    model.layer4.register_forward_hook(lambda m, i, o: means.append(o.mean()))
    model.layer3.register_forward_hook(lambda m, i, o: latest.append(o))
    model.cuda().eval()
    with torch.no_grad():
        for images, _ in loader:
            latest.clear()
            model(images.cuda())
            print(latest[0].std().item())
    return torch.cat(grabbed), torch.stack(means)
