"""A large network, run over every tile of a slide after it has been fitted."""

import numpy as np
import torch
from torchvision.models.segmentation import deeplabv3_resnet101


def fit(loader, epochs):
    net = deeplabv3_resnet101(num_classes=4).cuda()
    opt = torch.optim.AdamW(net.parameters(), 1e-4)
    for _ in range(epochs):
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(net(x.cuda())["out"], y.cuda())
            opt.zero_grad()
            loss.backward()
            opt.step()
    return net


def draw(net, tiles):
    net.eval()
    whole = np.zeros((64, 64, 1024, 1024), dtype=np.uint8)
    for (row, column), tile in tiles:
        heat = net(tile.cuda())["out"]  # expect: GPU201
        whole[row, column] = heat.argmax(1)[0].byte().cpu().numpy()
    np.save("slide.npy", whole)


def main(loader, tiles):
    draw(fit(loader, 20), tiles)
