"""What becomes an array undetached in one arm, and is cut in the other, says nothing of grad."""

import numpy as np
from torchvision.models import resnet50


class Predictor:
    def __init__(self, uses_torch=True):
        self.uses_torch, self.net = uses_torch, resnet50().cuda()

    def to_host(self, scores):
        if self.uses_torch:
            rows = scores.detach().cpu().numpy()
        else:
            rows = np.asarray(scores)
        return rows

    def predict(self, loader):
        self.net.eval()
        rows = []
        for pictures in loader:
            rows.append(self.to_host(self.net(pictures.cuda())))  # low: GPU201
        return np.concatenate(rows)
