"""One of the programs that use a detector switches grad off before anything else, the other one does not."""
# file: detector.py
import torch
from torch import nn


class Detector:
    def __init__(self, net: nn.Module):
        self.net = net.cuda().eval()

    def detect(self, picture):
        boxes = self.net(picture.cuda())  # note: GPU201
        return boxes.detach().cpu()
# file: run.py
import torch
from detector import Detector


class Faces:
    def __init__(self, pictures, detector):
        self.pictures, self.detector = pictures, detector

    def __iter__(self):
        for picture in self.pictures:
            yield self.detector.detect(picture)


def main():
    torch.set_grad_enabled(False)
    detector = Detector(torch.load("net.pt", map_location="cpu"))
    for boxes in Faces(torch.load("pictures.pt"), detector):
        print(boxes.numpy())


if __name__ == "__main__":
    main()
# file: prepare.py
import torch
from detector import Detector


class Cropped(torch.utils.data.IterableDataset):
    def __init__(self, pictures, detector):
        self.pictures, self.detector = pictures, detector

    def __iter__(self):
        for picture in self.pictures:
            yield picture, self.detector.detect(picture)


if __name__ == "__main__":
    for picture, boxes in Cropped(torch.load("pictures.pt"), Detector(torch.load("net.pt", map_location="cpu"))):
        print(picture.shape, boxes.numpy())
