"""The weights of the best epoch are taken without a copy, and saved when training is over: the file has those of the last epoch."""

import torch
import torchvision


def train(model, loader, optimizer):
    model.train()
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def right(model, loader):
    model.eval()
    return sum((model(x.cuda()).argmax(1) == y.cuda()).sum().item() for x, y in loader)


def fit(loader, held_out, epochs=10):
    model = torchvision.models.resnet18().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    best, weights = 0, None
    for _ in range(epochs):
        train(model, loader, optimizer)
        found = right(model, held_out)
        if found > best:
            best = found
            weights = model.state_dict()  # expect: GPU404
    torch.save({"weights": weights, "right": best}, "best.pt")
