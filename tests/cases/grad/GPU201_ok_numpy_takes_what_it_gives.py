"""numpy computes with what the network gives as it is: it gives arrays, or it would fail."""

import numpy as np
import torch


def boxes_of(net, pictures, scale):
    net.to("cuda").eval()
    for picture in pictures:
        boxes, scores = net(picture.cuda())  # low: GPU201
        boxes = np.clip(boxes * scale, 0.0, 1.0)
        print(boxes.tolist(), scores.max().item())


def of_cameras(net, mode, frames):
    net.to("cuda").eval()
    if mode == "one":
        boxes, scores = net(frames[0].cuda())
        print(np.clip(boxes, 0.0, 1.0), scores.max().item())
    else:
        for frame in frames:
            boxes, scores = net(frame.cuda())  # low: GPU201
            print(np.clip(boxes, 0.0, 1.0), scores.max().item())


if __name__ == "__main__":
    boxes_of(torch.load("detector.pt"), torch.load("pictures.pt"), 2.0)
    of_cameras(torch.load("detector.pt"), "all", torch.load("pictures.pt"))
