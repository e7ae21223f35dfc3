"""`map_location=device` where the device is the GPU if there is one: the name holds the weights while the program trains."""

import torch


def main(net, optimizer, path, loader, epochs, train_one_epoch):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net.to(device)
    first = 0
    if path:
        state = torch.load(path, map_location=device)  # low: GPU403
        first = state["epoch"] + 1
        net.load_state_dict(state["net"])
        optimizer.load_state_dict(state["optimizer"])
    for epoch in range(first, epochs):
        train_one_epoch(net, loader, optimizer, epoch)


class Runner:
    def __init__(self, net):
        self.device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
        self.net = net.to(self.device)

    def run(self, path, loader, epochs):
        state = torch.load(path, map_location=self.device)  # low: GPU403
        self.net.load_state_dict(state["net"])
        for _ in range(epochs):
            self.train_one_epoch(loader)
