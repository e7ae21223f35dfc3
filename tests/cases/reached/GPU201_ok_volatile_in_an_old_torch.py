"""Written for a torch without `no_grad`, whose `volatile` switches grad off: the torch that runs it is a doubt."""

import torchvision
from torch.autograd import Variable
from torch.nn import functional as F


def test(net, loader):
    net.eval()
    total = 0
    for x, y in loader:
        scores = net(Variable(x.cuda(), volatile=True))  # low: GPU201, GPU204
        total += F.cross_entropy(scores, Variable(y.cuda())).data[0]
    return total


print(test(torchvision.models.resnet50().cuda(), load("test")))
