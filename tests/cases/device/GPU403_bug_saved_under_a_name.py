"""The file saves what it loads: the state dicts of networks on a GPU, put together under a name first."""
import torch


def load(path):
    place = None
    if not torch.cuda.is_available():  # low: GPU403
        place = torch.device("cpu")
    return torch.load(path, map_location=place)


class Keeper:
    def __init__(self, networks, folder):
        self.networks, self.folder = networks, folder

    def save(self, step):
        states = {name: network.state_dict() for name, network in self.networks.items()}
        whole = {}
        for name, state in states.items():
            whole[name] = state
        whole["step"] = step
        torch.save(whole, f"{self.folder}/{step}.pt")
