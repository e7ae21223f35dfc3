"""Nothing speaks of CUDA here; but what can be moved is moved to the device of the configuration."""

import torch


def load_and_run(config, build, path, data):
    checkpoint = torch.load(path)  # low: GPU403
    model = build(config, data).to(config["device"])
    model.load_state_dict(checkpoint["state_dict"])
    return model


class Solver:
    def __init__(self, net, optimizer, device):
        self.device = device
        self.net, self.optimizer = net.to(self.device), optimizer

    def resume(self, path):
        state = torch.load(path)  # low: GPU403
        self.net.load_state_dict(state["net"])
        self.optimizer.load_state_dict(state["optimizer"])
        return state["epoch"]
