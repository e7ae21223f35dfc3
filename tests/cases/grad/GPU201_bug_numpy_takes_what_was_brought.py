"""numpy computes with what was brought to the host before, or is told the shape alone."""

import numpy as np
import torch


def boxes_of(net, pictures, scale):
    net.to("cuda").eval()
    for picture in pictures:
        boxes, scores = net(picture.cuda())  # medium: GPU201
        found = np.clip(boxes.detach().cpu().numpy() * scale, 0.0, 1.0)
        print(found, np.prod(boxes.shape), scores.max().item())


def count(net, pictures, wanted):
    net.to("cuda").eval()
    error = 0.0
    for picture in pictures:
        density = net(picture.cuda())  # medium: GPU201
        density = density.data.cpu().numpy()
        difference = np.sum(density) - wanted
        error += difference * difference
    print(np.sqrt(error))


if __name__ == "__main__":
    boxes_of(torch.load("detector.pt"), torch.load("pictures.pt"), 2.0)
    count(torch.load("detector.pt"), torch.load("pictures.pt"), 2.0)
