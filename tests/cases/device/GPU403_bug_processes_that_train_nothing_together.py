"""A process group is made where there are several, and no network is spread over them: what each would load is let go of at once."""
import torch
from torch import nn
from torchvision.models import resnet50


def main(args, loader):
    if args.local_rank != -1:
        torch.cuda.set_device(args.local_rank)
        torch.distributed.init_process_group("nccl")
    net = resnet50().cuda()
    opt = torch.optim.SGD(net.parameters(), 0.1)
    for x, y in loader:
        loss = nn.functional.cross_entropy(net(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
    torch.save(net.state_dict(), "best.bin")
    net.load_state_dict(torch.load("best.bin"))  # expect: GPU403
