"""With CUDA the place is None: everything comes back beside the network."""

import torch


def restore(path, net, optimizer):
    place = None if torch.cuda.is_available() else "cpu"  # low: GPU403
    saved = torch.load(path, map_location=place)
    net.load_state_dict(saved["net"])
    optimizer.load_state_dict(saved["optimizer"])
    return saved["step"]
