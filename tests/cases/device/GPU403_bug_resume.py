import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--resume")
args = parser.parse_args()

model = nn.Transformer().cuda()
optimizer = torch.optim.Adam(model.parameters())
start = 0
if args.resume:
    checkpoint = torch.load(args.resume)  # expect: GPU403
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    start = checkpoint["epoch"] + 1
