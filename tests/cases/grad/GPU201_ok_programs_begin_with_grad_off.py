"""All programs that use a detector switch grad off before anything else, be it called from an iterator of theirs."""
# file: detector.py
import torch
from torch import nn


class Detector:
    def __init__(self, net: nn.Module):
        self.net = net.cuda().eval()

    def detect(self, picture):
        boxes = self.net(picture.cuda())
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
    torch.no_grad().__enter__()
    for picture, boxes in Cropped(torch.load("pictures.pt"), Detector(torch.load("net.pt", map_location="cpu"))):
        print(picture.shape, boxes.numpy())
