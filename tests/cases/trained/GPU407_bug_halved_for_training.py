"""A program that trains in half precision: what its gradients and activations take later may be more than this."""

import torch
from torchvision.models import vit_l_16

model = vit_l_16()
model = model.cuda()
model = model.half()  # low: GPU407
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)


def train(loader):
    for images, labels in loader:
        loss = torch.nn.functional.cross_entropy(model(images.cuda().half()).float(), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
