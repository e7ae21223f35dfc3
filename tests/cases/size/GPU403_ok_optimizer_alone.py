"""An optimizer takes over the tensors that come on its device: nothing is there twice."""

import os

import torch


def resume(net, optimizer, folder):
    net.cuda()
    optimizer.load_state_dict(torch.load(os.path.join(folder, "optimizer.pt")))
    state = torch.load(os.path.join(folder, "adam.pt"))
    optimizer.load_state_dict(state["optimizer"])
    return state["epoch"]
