"""Files that are programs as well: they go through data, take a command line, or nobody imports them."""
# file: scoring.py
import torch
from torch import nn


class Scorer(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.body = nn.Sequential(*(nn.Conv2d(width, width, 3) for _ in range(depth)))

    def forward(self, x):
        return self.body(x)


def score(net, pictures):
    net.eval()
    found = []
    for picture in pictures:
        found.append(net(picture.cuda()).argmax(1).cpu())  # expect: GPU201
    return found


if __name__ == "__main__":
    from pathlib import Path

    from imageio import imread

    net = Scorer(256, 12).cuda()
    print(score(net, [torch.from_numpy(imread(path)).float() for path in Path("pictures").glob("*.png")]))
# file: tagging.py
import argparse

import torch
from scoring import Scorer


def tag(net, pictures):
    net.eval()
    found = []
    for picture in pictures:
        found.append(net(picture.cuda()).argmax(1).cpu())  # expect: GPU201
    return found


def words_of(numbers):
    return [str(number) for number in numbers]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("pictures")
    net = Scorer(256, 12).cuda()
    print(words_of(tag(net, torch.load(parser.parse_args().pictures))))
# file: sorting.py
import torch
from scoring import Scorer
from tagging import words_of


def kinds(net, pictures):
    net.eval()
    found = []
    for picture in pictures:
        found.append(net(picture.cuda()).argmax(1).cpu())  # expect: GPU201
    return words_of(found)


if __name__ == "__main__":
    net = Scorer(256, 12).cuda()
    print(kinds(net, torch.load("pictures.pt")))
# file: sounds.py
import torch
from data import Clips
from scoring import Scorer


def classes(net, clips):
    net.eval()
    found = []
    for clip in clips:
        found.append(net(clip.cuda()).argmax(1).cpu())  # expect: GPU201
    return found


if __name__ == "__main__":
    net = Scorer(256, 12).cuda()
    print(classes(net, Clips("clips")))
# file: album.py
from sounds import Scorer

print(Scorer(3, 3))
# file: data.py
from torch.utils.data import Dataset


class Clips(Dataset):
    def __getitem__(self, number):
        return self.clips[number]
