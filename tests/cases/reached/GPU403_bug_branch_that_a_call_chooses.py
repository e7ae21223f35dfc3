"""Without `--gpu` it is None, and each process loads onto the first GPU."""

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torchvision.models import resnet50


def main(args):
    if args.several:
        mp.spawn(work, nprocs=torch.cuda.device_count(), args=(args,))
    else:
        work(args.gpu, args)


def work(gpu, args):
    args.gpu = gpu
    if args.several:
        dist.init_process_group("nccl", rank=gpu)
    net = resnet50().cuda(args.gpu)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    if args.resume:
        if args.gpu is None:
            state = torch.load(args.resume)  # expect: GPU403
        else:
            state = torch.load(args.resume, map_location=f"cuda:{args.gpu}")  # maybe: GPU403
        net.load_state_dict(state["net"])
        opt.load_state_dict(state["opt"])
    for epoch in range(90):
        torch.save({"net": net.state_dict(), "opt": opt.state_dict()}, args.resume)
