import torch
from compat import MODERN

NEW = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 4)
IS_TORCH24 = True


def scaler():
    return torch.amp.GradScaler("cuda") if NEW else torch.cuda.amp.GradScaler()


def other_scaler():
    if MODERN:
        return torch.amp.GradScaler("cuda")
    return None if MODERN else torch.cuda.amp.GradScaler()


def third():
    if not IS_TORCH24:
        return torch.cuda.amp.GradScaler()
    return torch.amp.GradScaler("cuda")


try:
    from torch.cuda.amp import custom_fwd as wide, GradScaler as Scaler
except ImportError:
    pass


def fourth():
    return Scaler()


if NEW:
    from torch.cuda.amp import autocast
else:

    def autocast(enabled=True):
        return torch.no_grad()


def fifth(net, x):
    with autocast(False):
        return net(x)
