"""What the hook has gathered is joined after the last batch; the host's copies still have their graphs."""

from collections import defaultdict
from functools import partial

import torch
from torch import nn
from torchvision.models import resnet18

net = resnet18().cuda()
batches = [torch.rand(16, 3, 224, 224).cuda() for _ in range(10)]
seen = defaultdict(list)


def keep(name, module, args, output):
    seen[name].append(output.cpu())  # expect: GPU105


for name, part in net.named_modules():
    if isinstance(part, nn.Conv2d):
        part.register_forward_hook(partial(keep, name))

for batch in batches:
    net(batch)  # maybe: GPU201

seen = {name: torch.cat(parts) for name, parts in seen.items()}
