"""The network of another package may be one that freezes its parameters: with them frozen the forward saves nothing."""

import numpy as np
import torch
from inception import InceptionV3
from torch.autograd import Variable


def activations(images, model, batch_size=50):
    model.eval()
    rows = np.empty((len(images), 2048))
    for k in range(0, len(images), batch_size):
        batch = Variable(torch.from_numpy(images[k : k + batch_size]).float().cuda(), volatile=True)  # low: GPU204
        rows[k : k + batch_size] = model(batch)[0].data.cpu().numpy()[:, :, 0, 0]  # low: GPU201
    return rows


def distance(images, others):
    model = InceptionV3([3]).cuda()
    return np.abs(activations(images, model).mean(0) - activations(others, model).mean(0)).sum()
