"""numpy computes with what was brought to the host before, or is told the shape alone."""

import numpy as np
import torch


def boxes_of(net, pictures, scale):
    net.to("cuda").eval()
    for picture in pictures:
        boxes, scores = net(picture.cuda())  # medium: GPU201
        found = np.clip(boxes.detach().cpu().numpy() * scale, 0.0, 1.0)
        print(found, np.prod(boxes.shape), scores.max().item())


if __name__ == "__main__":
    boxes_of(torch.load("detector.pt"), torch.load("pictures.pt"), 2.0)
