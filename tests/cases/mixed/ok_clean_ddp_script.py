import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler
from torchvision.models import resnet50


def evaluate(model, loader, device):
    model.eval()
    stats = torch.zeros(3, device=device)
    with torch.no_grad():
        for x, y in loader:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            out = model(x)
            stats[0] += F.cross_entropy(out, y, reduction="sum")
            stats[1] += (out.argmax(1) == y).sum()
            stats[2] += y.numel()
    dist.all_reduce(stats)
    return (stats[0] / stats[2]).item(), (stats[1] / stats[2]).item()


def main(train_set, val_set):
    dist.init_process_group("nccl")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    model = DDP(resnet50().to(device), device_ids=[device.index])
    opt = torch.optim.SGD(model.parameters(), 0.1, 0.9)
    sampler = DistributedSampler(train_set)
    loader = DataLoader(train_set, 256, sampler=sampler)
    for epoch in range(90):
        sampler.set_epoch(epoch)
        model.train()
        for i, (x, y) in enumerate(loader):
            loss = F.cross_entropy(model(x.to(device)), y.to(device))
            opt.zero_grad()
            loss.backward()
            opt.step()
            if i % 100 == 0 and dist.get_rank() == 0:
                print(epoch, i, loss.item())
        print(epoch, *evaluate(model, DataLoader(val_set, 256), device))


if __name__ == "__main__":
    from data import train_set, val_set

    main(train_set, val_set)
