"""The helper gives lists back as they are, and a list may hold what the network gives."""

import torch


class Generator:
    def __init__(self, net: torch.nn.Module, device):
        self.net = net.to(device)
        self.net.eval()
        self.device = device

    def value_of(self, found):
        if isinstance(found, list):
            return found
        return found.to("cpu").detach().numpy()

    def synthesise(self, codes):
        self.net.eval()
        images = self.net(torch.from_numpy(codes).to(self.device))  # maybe: GPU201
        return {"code": codes, "image": self.value_of([images])}
