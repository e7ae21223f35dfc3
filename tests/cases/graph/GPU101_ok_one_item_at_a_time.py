"""One item a round: without its graph, for a backward through all of them, or a few of them that a loss is made with."""

import torch
from PIL import Image
from torchvision.models import resnet18


def features(paths, transform):
    net = resnet18().cuda()
    kept = []
    for path in paths:
        image = transform(Image.open(path).convert("RGB")).unsqueeze(0).cuda()
        kept.append(net(image).detach().cpu())  # maybe: GPU201
    print(len(kept))


def fit_styles(net: torch.nn.Module, paths, picture, transform, optimizer):
    styles = []
    for path in paths:
        styles.append(net(transform(Image.open(path))[None].cuda()))
    for _ in range(100):
        loss = sum((net(picture) - style).square().mean() for style in styles)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)  # maybe: GPU301
        optimizer.step()


def one_loss(net: torch.nn.Module, dataset, optimizer):
    losses = []
    for i in range(len(dataset)):
        image, label = dataset[i]
        losses.append(torch.nn.functional.cross_entropy(net(image[None].cuda()), label.cuda()))
    torch.stack(losses).mean().backward()
    optimizer.step()
