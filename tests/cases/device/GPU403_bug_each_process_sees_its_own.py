"""Processes that let themselves see one GPU each, by their rank: what each loads goes to its own, beside what it is copied to, as in any program."""

# file: distributed.py
import os

import torch.distributed as dist
from mpi4py import MPI


def setup():
    if not dist.is_initialized():
        os.environ["CUDA_VISIBLE_DEVICES"] = f"{MPI.COMM_WORLD.Get_rank() % 8}"
        dist.init_process_group(backend="nccl", init_method="env://")


# file: evaluate.py
import distributed
import torch
import torch.distributed as dist
from torchvision.models import inception_v3


def main(path):
    distributed.setup()
    features = inception_v3().cuda()
    features.load_state_dict(torch.load(path))  # low: GPU403
    dist.barrier()
    torch.save(features.state_dict(), path)


main("inception.pt")
