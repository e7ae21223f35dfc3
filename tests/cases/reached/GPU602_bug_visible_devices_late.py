import os

import torch


def main(rank, make):
    torch.cuda.set_device(0)
    x = torch.zeros(1, device="cuda")
    os.environ["CUDA_VISIBLE_DEVICES"] = str(rank)  # expect: GPU602
    return make().cuda(), x
