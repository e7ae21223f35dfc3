"""The place is the host only where there is no CUDA."""

import torch


def restore(path, net):
    where = None
    if not torch.cuda.is_available():  # low: GPU403
        where = torch.device("cpu")
    net.load_state_dict(torch.load(path, map_location=where)["net"])
