"""The figures are tensors for a while: a loop makes numbers of them all before anybody gets them."""

from collections import OrderedDict

import torch
import torch.distributed as dist


class Segmentor(torch.nn.Module):
    def losses(self, batch):
        return parse_losses(self(**batch))


def parse_losses(losses):
    figures = OrderedDict()
    for name, value in losses.items():
        if isinstance(value, torch.Tensor):
            figures[name] = value.mean()
        elif isinstance(value, list):
            figures[name] = sum(one.mean() for one in value)
        else:
            raise TypeError(name)
    loss = sum(value for name, value in figures.items() if "loss" in name)
    figures["loss"] = loss
    for name, value in figures.items():
        if dist.is_available() and dist.is_initialized():
            value = value.data.clone()
            dist.all_reduce(value.div_(dist.get_world_size()))
        figures[name] = value.item()
    return loss, figures
