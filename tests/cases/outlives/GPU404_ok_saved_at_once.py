import copy

import torch


class Trainer:
    def __init__(self, net, path):
        self.net = net.to("cuda")
        self.path = path

    def save(self):
        weights = copy.deepcopy(self.net.state_dict())
        torch.save(weights, self.path)

    def state(self):
        found = {}
        self.net.to(torch.device("cpu"))
        found["net"] = copy.deepcopy(self.net.state_dict())
        self.net.to("cuda")
        return found
