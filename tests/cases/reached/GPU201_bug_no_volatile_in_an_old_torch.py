"""Written for a torch without `no_grad`, in which `volatile` would have done: nothing here says it."""

import torchvision
from torch.autograd import Variable
from torch.nn import functional as F


def test(net, loader):
    net.eval()
    total = 0
    for x, y in loader:
        scores = net(Variable(x.cuda()))  # expect: GPU201
        total += F.cross_entropy(scores, Variable(y.cuda())).data[0]
    return total


print(test(torchvision.models.resnet50().cuda(), load("test")))
