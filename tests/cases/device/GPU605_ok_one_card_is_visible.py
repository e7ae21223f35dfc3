"""Each process sees one card alone, so the first is its own."""

import os

import torch
from torch import nn

local_rank = int(os.environ["LOCAL_RANK"])
os.environ["CUDA_VISIBLE_DEVICES"] = str(local_rank)
model = nn.Linear(64, 64).cuda()
torch.cuda.set_device(local_rank)
