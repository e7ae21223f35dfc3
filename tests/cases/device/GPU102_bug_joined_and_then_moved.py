"""The same, of results that are still on the device where they are joined."""

import numpy as np
import torch


@torch.no_grad()
def written(loader, model, path):
    model.cuda().eval()
    masks = []
    for pictures, _ in loader:
        output = model(pictures.cuda())
        masks.append(output)  # low: GPU102
    everything = torch.cat(masks)
    everything = everything.cpu()
    np.save(path, everything.numpy())


@torch.no_grad()
def joined(loader, model, path):
    model.cuda().eval()
    masks = []
    for pictures, _ in loader:
        masks.append(model(pictures.cuda()))  # low: GPU102
    np.save(path, torch.cat(masks).cpu().numpy())
