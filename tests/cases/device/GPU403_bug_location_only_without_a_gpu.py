"""The location is the host only where there is no GPU; with one, the whole checkpoint comes back beside what is trained."""

import os

import torch
from torch import nn, optim


def restore(folder, net, optimizer):
    map_location = None
    if not torch.cuda.is_available():  # expect: GPU403@a
        map_location = "cpu"
    state = torch.load(os.path.join(folder, "latest.tar"), map_location=map_location)  # expect: GPU403@a
    net.load_state_dict(state["net"])
    optimizer.load_state_dict(state["optimizer"])
    return state


def main(args, loader):
    net = nn.Transformer(d_model=1024, num_encoder_layers=12).cuda()
    optimizer = optim.Adam(net.parameters(), lr=args.lr)
    state = restore(args.folder, net, optimizer)
    for epoch in range(state["epoch"], args.epochs):
        for source, target in loader:
            loss = net(source.cuda(), target.cuda()).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        torch.save(
            {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch + 1},
            os.path.join(args.folder, "latest.tar"),
        )
