"""The network has the type of the weights that it is given: what it was made with is gone. Copied into it, they are float32 as it is."""

import torch
from torchvision.models import vit_l_16


def assigned(states):
    net = vit_l_16()
    net.load_state_dict(states, assign=True)
    net.cuda()
    return net.to(torch.bfloat16)


def copied(states):
    net = vit_l_16()
    net.load_state_dict(states)
    net.cuda()
    return net.to(torch.bfloat16)  # expect: GPU407
