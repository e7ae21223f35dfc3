import os

import torch
from tools import merge_shards


def build(make, path, folder, device):
    net = make().eval()
    if os.path.isdir(path):
        file = os.path.join(folder, "merged.pt")
        if not os.path.isfile(file):
            merge_shards(path, file)
        state = torch.load(file)
        net.load_state_dict(state["ema"]["params"])
    else:
        file = path
        state = torch.load(file)  # low: GPU403
        if "ema" in state:
            state = state["ema"]["params"]
        net.load_state_dict(state)
    return net.to(device)
