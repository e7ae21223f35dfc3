"""Twenty scores for each pixel of every picture of a test set, joined at the end for the host."""

import numpy as np
import torch
from torchvision.models.segmentation import fcn_resnet50


@torch.no_grad()
def dump(loader, weights):
    net = fcn_resnet50(num_classes=20)
    net.load_state_dict(weights)
    net.cuda().eval()
    scores = []
    for x, _ in loader:
        scores.append(net(x.cuda())["out"])  # expect: GPU102
    np.save("scores.npy", torch.cat(scores).half().cpu().numpy())
