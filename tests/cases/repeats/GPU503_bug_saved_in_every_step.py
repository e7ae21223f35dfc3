import torch
from torch import nn
from torchvision.models import resnet152


def train(loader):
    model = resnet152().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for inputs, targets in loader:
        loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.save({"model": model.state_dict()}, "last.pt")  # expect: GPU503


class Keeper:
    def keep(self, model):
        torch.save(model.state_dict(), "net.pt")


def train_another(model, optimizer, loader, keeper: Keeper):
    for inputs, targets in loader:
        loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        keeper.keep(model)  # note: GPU503
