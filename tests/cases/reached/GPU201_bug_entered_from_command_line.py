"""A function that a command line, a process or a web page runs: handed over, but to nobody who switches grad off."""

import clip
import fire
import torch
from PIL import Image
from torch import multiprocessing as mp
from torchvision import models


def search(picture, index, device="cuda"):
    network, prepare = clip.load("ViT-B/32", device=device)
    vector = network.encode_image(prepare(Image.open(picture)).unsqueeze(0).to(device))  # expect: GPU201
    return index.search(vector.cpu().detach().numpy(), 10)


def work(rank, loader):
    network = models.resnet18().to(rank)
    hits = 0
    for images, labels in loader:
        scores = network(images.to(rank))  # expect: GPU201
        hits += (scores.argmax(1).cpu() == labels).sum().item()
    print(rank, hits)


def spread(loader):
    mp.spawn(work, args=(loader,), nprocs=torch.cuda.device_count())


if __name__ == "__main__":
    fire.Fire(search)
