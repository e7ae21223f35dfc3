"""Steps that are defined within the function that trains: one of them it calls, one it hands on, and one nobody speaks of but
another that is left over like itself."""
import torch
from torch import nn


def run(net, judge, loader, each):
    optimizer = torch.optim.Adam(judge.parameters())

    def warm_up(images, labels):
        rows = net(images.cuda()).detach()  # low: GPU202
        loss = nn.functional.cross_entropy(judge(rows), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    def warm_up_for_long(loader):
        for images, labels in loader:
            warm_up(images, labels)

    def step(images, labels):
        rows = net(images.cuda()).detach()  # expect: GPU202
        loss = nn.functional.cross_entropy(judge(rows), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    def step_of_halves(images, labels):
        rows = net(images.cuda().half()).detach()  # expect: GPU202
        loss = nn.functional.cross_entropy(judge(rows), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    for images, labels in loader:
        step(images, labels)
    each(loader, step_of_halves)


if __name__ == "__main__":
    wide = nn.Sequential(nn.Conv2d(3, 512, 3), nn.ReLU(), nn.Conv2d(512, 512, 3), nn.Flatten())
    run(wide.cuda(), nn.LazyLinear(10).cuda(), torch.utils.data.DataLoader([]), lambda data, do: [do(*one) for one in data])
