import os

import torch
from torch import nn

model = nn.Linear(10, 10).cuda()
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"  # expect: GPU602


def run(x):
    with torch.no_grad():
        return model(x.cuda()).cpu()
