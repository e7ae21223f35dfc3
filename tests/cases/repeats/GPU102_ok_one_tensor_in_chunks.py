import torch
from torch import nn


@torch.no_grad()
def hidden_states(model: nn.Module, ids: torch.Tensor, mask: torch.Tensor, chunk=8) -> torch.Tensor:
    model.cuda().eval()
    found = []
    for i in range(0, ids.shape[0], chunk):
        states = model(ids[i : i + chunk], mask=mask[i : i + chunk]).hidden_states
        found.append(torch.cat(states, dim=-1))  # maybe: GPU102
    return torch.cat(found)


@torch.no_grad()
def in_chunks(size, model: nn.Module, *args):
    split_args = list(zip(*[arg.cuda().split(size) for arg in args]))
    return torch.cat([model(*parts) for parts in split_args])


def register(levels, model: nn.Module, opt, loss_of):
    found = []
    for image, target in levels:
        for _ in range(50):
            loss = loss_of(image.cuda(), target.cuda(), model())
            opt.zero_grad()
            loss.backward()
            opt.step()
        found.append(model().clone().detach())
    return found
