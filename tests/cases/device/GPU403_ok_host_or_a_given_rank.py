"""The place is the host, or the rank's own GPU where the optimizer's state is wanted at once."""

import torch


def restore(path, net, optimizer):
    where = "cpu"
    if not torch.cuda.is_available():
        print("no GPU")
    net.load_state_dict(torch.load(path, map_location=where)["net"])
    optimizer.load_state_dict(torch.load(path, map_location=where)["optimizer"])
