import torch

NEW = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 4)
IS_TORCH24 = True


def scaler():
    return torch.amp.GradScaler("cuda") if NEW else torch.cuda.amp.GradScaler()


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
