"""numpy computes with what was brought to the host before, or is told the shape alone."""

import numpy as np
import torch


def boxes_of(net, pictures, scale):
    net.to("cuda").eval()
    for picture in pictures:
        boxes, scores = net(picture.cuda())  # expect: GPU201
        found = np.clip(boxes.detach().cpu().numpy() * scale, 0.0, 1.0)
        print(found, np.prod(boxes.shape), scores.max().item())


def count(net, pictures, wanted):
    net.to("cuda").eval()
    error = 0.0
    for picture in pictures:
        density = net(picture.cuda())  # expect: GPU201
        density = density.data.cpu().numpy()
        difference = np.sum(density) - wanted
        error += difference * difference
    print(np.sqrt(error))


class Matcher:
    def __init__(self, net, pairs):
        self.net = net.cuda()
        self.pairs = pairs

    def matched(self, one, other):
        nearest = torch.cdist(one.detach(), other.detach()).argmin(1).cpu().numpy()
        return np.arange(len(nearest)), nearest

    def errors(self):
        self.net.eval()
        found = []
        for first, second, wanted in self.pairs:
            one = self.net(first.cuda())  # expect: GPU201
            other = self.net(second.cuda())
            left, right = self.matched(one, other)
            found.append(np.linalg.norm(left - right - wanted))
        return found


if __name__ == "__main__":
    boxes_of(torch.load("detector.pt"), torch.load("pictures.pt"), 2.0)
    count(torch.load("detector.pt"), torch.load("pictures.pt"), 2.0)
