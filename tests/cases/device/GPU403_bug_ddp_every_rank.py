import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def main(net, path):
    dist.init_process_group("nccl")
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    model = DDP(net.cuda(rank), device_ids=[rank])
    ckpt = torch.load(path, weights_only=True)  # expect: GPU403
    model.module.load_state_dict(ckpt["state_dict"])
    return model, ckpt["epoch"]
