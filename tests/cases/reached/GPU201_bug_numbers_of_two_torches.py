"""A number is read as in an old torch, and another as only a newer one can: `volatile` does nothing there."""

import torchvision
from torch.autograd import Variable
from torch.nn import functional as F


def run(net, loader, optimizer=None):
    net.train(optimizer is not None)
    right = []
    for x, y in loader:
        x = Variable(x.cuda(), volatile=optimizer is None)
        scores = net(x)  # expect: GPU201
        loss = F.cross_entropy(scores, y.cuda())
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(loss.data[0])
        right.append((scores.data.argmax(1) == y.cuda()).sum().item())
    return right


run(torchvision.models.resnet50().cuda(), load("test"))
