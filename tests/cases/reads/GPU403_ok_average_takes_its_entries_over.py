import torch
from torch import nn
from torchvision.models import resnet50


class Average:
    def __init__(self, net):
        self.entries = {name: one.detach().clone() for name, one in net.named_parameters()}

    def update(self, net):
        for name, one in net.named_parameters():
            self.entries[name].mul_(0.99).add_(one.detach(), alpha=0.01)

    def state_dict(self):
        return self.entries

    def load_state_dict(self, state):
        self.entries = state


def resume(loader):
    net = resnet50().cuda()
    optimizer = torch.optim.Adam(net.parameters())
    average = Average(net)
    saved = torch.load("last.pt")  # low: GPU403
    net.load_state_dict(saved["net"])
    optimizer.load_state_dict(saved["optimizer"])
    average.load_state_dict(saved["average"])
    for inputs, targets in loader:
        loss = nn.functional.cross_entropy(net(inputs.cuda()), targets.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update(net)
    torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "average": average.state_dict()}, "last.pt")
