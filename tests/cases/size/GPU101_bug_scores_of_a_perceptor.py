"""Scores of a perceptor of which most is frozen pile up with their graphs, of what is given to its layers, or with that of a network
behind them as well; in two rounds there are two of them."""

import lpips
import torch
from torchvision.models import resnet50


def distances(loader, references):
    perceptor = lpips.LPIPS(net="vgg").cuda()
    scores = []
    for images in loader:
        scores.append(perceptor(images.cuda(), references).squeeze())  # expect: GPU101  # low: GPU201
    print(torch.stack(scores).mean().item())


def of_made_ones(loader):
    net = resnet50().cuda()
    net.eval()
    perceptor = lpips.LPIPS(net="vgg").cuda()
    scores = []
    for images in loader:
        made = net(images.cuda())  # maybe: GPU201
        scores.append(perceptor(made, images).squeeze())  # expect: GPU101
    print(torch.stack(scores).mean().item())


def of_two(loader):
    rounds = 2
    net = resnet50().cuda()
    net.eval()
    batches = iter(loader)
    kept = {"loss": []}
    for _ in range(rounds):
        images, labels = next(batches)
        loss = torch.nn.functional.cross_entropy(net(images.cuda()), labels.cuda())  # note: GPU201
        kept["loss"].append(loss)  # expect: GPU101
    print(torch.stack(kept["loss"]).mean().item())


if __name__ == "__main__":
    distances(torch.load("pictures.pt"), torch.load("references.pt"))
    of_made_ones(torch.load("pictures.pt"))
    of_two(torch.load("pictures.pt"))
