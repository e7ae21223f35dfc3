import torch


def chosen(net, path, device):
    net.load_state_dict(torch.load(path, map_location=device))
    net.load_state_dict(torch.load(path, **{"map_location": device}))
