import torch


def load(net, path):
    ckpt = torch.load(path, map_location=None, weights_only=True)  # low: GPU403
    weights = ckpt["state_dict"]
    weights = {k.removeprefix("module."): v for k, v in weights.items()}
    net.load_state_dict(ckpt.get("state_dict"))
    return net.cuda(), weights
