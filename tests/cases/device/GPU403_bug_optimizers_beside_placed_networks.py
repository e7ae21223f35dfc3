"""Every rank restores networks to a place that is said, and optimizers to wherever they were saved."""
import torch
import torch.distributed as dist


def save(networks, optimizers, folder):
    for number, network in enumerate(networks):
        torch.save(network.state_dict(), f"{folder}/network_{number}.pt")
    for number, optimizer in enumerate(optimizers):
        torch.save(optimizer.state_dict(), f"{folder}/optimizer_{number}.pt")


def restore(networks, optimizers, folder):
    place = torch.device("cuda", dist.get_rank())
    for number, network in enumerate(networks):
        networks[number].load_state_dict(torch.load(f"{folder}/network_{number}.pt", map_location=place))
    for number, optimizer in enumerate(optimizers):
        state = torch.load(f"{folder}/optimizer_{number}.pt")  # expect: GPU403
        optimizers[number].load_state_dict(state)
