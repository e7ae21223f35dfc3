"""A constructor copies the weights of networks that it is given, wherever they are by then."""

import copy

import torch


class Adapter:
    def __init__(self, net, head):
        self.head = head
        self.net = net
        self.start = copy.deepcopy(self.net.state_dict())  # low: GPU404
        self.top = copy.deepcopy(head.state_dict())  # low: GPU404

    def adapt(self, loader):
        optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        for x in loader:
            loss = self.head(self.net(x.cuda())).mean()
            loss.backward()
            optimizer.step()

    def reset(self):
        self.net.load_state_dict(self.start)
        self.head.load_state_dict(self.top)
