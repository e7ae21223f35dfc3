"""A dict with a copy for each round grows like a list."""

import copy

import torch


class Run:
    def __init__(self, net, opt, rounds):
        self.net, self.opt, self.rounds = net.cuda(), opt, rounds
        self.kept = {}

    def fit(self, loader):
        for number in range(self.rounds):
            for x, y in loader:
                self.opt.zero_grad()
                torch.nn.functional.mse_loss(self.net(x.cuda()), y.cuda()).backward()
                self.opt.step()
            if number % 10 == 0:
                self.kept[number] = copy.deepcopy(self.net.state_dict())  # expect: GPU404
        return self.kept

    def compare(self, score):
        found = {}
        for number, state in self.kept.items():
            self.net.load_state_dict(state)
            found[number] = score(self.net)
        return found


def history(net, rounds, train):
    net.cuda()
    states = {}
    for number in range(rounds):
        train(net)
        states[f"round {number}"] = copy.deepcopy(net.state_dict())  # expect: GPU404
    return states
