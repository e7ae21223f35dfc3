"""Running totals given together with what a star unpacks, on both sides of it: counted from the end where the star stands before."""

import torch

model = torch.nn.Linear(10, 2).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train(loader):
    total = 0
    for images, labels in loader:
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        *_, rows, total = *images.shape, len(labels), total + loss  # note: GPU101
        *_, height, width, kind = *images.shape, images.dtype
    return total / rows, (height, width, kind)
