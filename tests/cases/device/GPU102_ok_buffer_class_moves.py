"""Buffers that keep their parts on a device of their own, on the host, or as arrays."""

import torch


class Buffer:
    def __init__(self, device="cpu"):
        self.device = device
        self.parts, self.host, self.arrays = [], [], []

    def add(self, value):
        value = value.detach().to(self.device)
        self.parts.append(value)

    def add_host(self, value):
        self.host.append(value.detach().cpu())

    def add_array(self, value):
        self.arrays.append(value.detach().cpu().numpy())


@torch.no_grad()
def embed(model: torch.nn.Module, loader, device="cuda"):
    model.eval()
    buffer = Buffer()
    for images, _ in loader:
        features = model(images.to(device))
        buffer.add(features)
        buffer.add_host(features)
        buffer.add_array(features)
    return buffer
