import torch

try:
    from torch.amp import GradScaler
except ImportError:
    from torch.cuda.amp import GradScaler

OLD = not hasattr(torch, "amp")


def scaler():
    return GradScaler()


def context(enabled):
    if hasattr(torch.amp, "autocast"):
        return torch.amp.autocast("cuda", enabled=enabled)
    else:
        return torch.cuda.amp.autocast(enabled)


def gauge():
    return torch.cuda.memory_cached() if OLD else torch.cuda.memory_reserved()


def memory_cached():
    """Offered under its old name on purpose."""
    return torch.cuda.memory_cached()
