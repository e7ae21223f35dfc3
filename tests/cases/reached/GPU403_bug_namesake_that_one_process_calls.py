# file: programs/__init__.py
"""Programs started from this folder, which is a package as well: `PYTHONPATH=programs torchrun programs/training/main.py`."""


# file: programs/training/__init__.py


# file: programs/evaluation/__init__.py


# file: programs/analysis/__init__.py


# file: programs/evaluation/loading.py
import torch
from torchvision.models import vit_l_16


def restored(path):
    net = vit_l_16().cuda()
    weights = torch.load(path)  # expect: GPU403
    net.load_state_dict(weights)
    return net


# file: programs/analysis/features.py
"""Its own copy of what the training calls: one process extracts features."""

import sys

import torch
from torchvision.models import vit_l_16


def restored(path):
    net = vit_l_16().cuda()
    weights = torch.load(path)
    net.load_state_dict(weights)
    return net


def main(path, batches):
    net = restored(path).eval()
    with torch.no_grad():
        torch.save([net(images.cuda()).cpu() for images in batches], "features.pt")


if __name__ == "__main__":
    main(sys.argv[1], torch.load(sys.argv[2], map_location="cpu"))


# file: programs/training/main.py
import sys

import torch
import torch.distributed as dist
from evaluation.loading import restored
from torch.nn.parallel import DistributedDataParallel


def main(path, loader):
    dist.init_process_group("nccl")
    net = DistributedDataParallel(restored(path))
    optimizer = torch.optim.AdamW(net.parameters())
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(net(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if dist.get_rank() == 0:
        torch.save(net.module.state_dict(), path)


if __name__ == "__main__":
    main(sys.argv[1], torch.load(sys.argv[2], map_location="cpu"))
