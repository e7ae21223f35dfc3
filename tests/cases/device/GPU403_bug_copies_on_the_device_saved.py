import torch
from torch import nn


class Tagger:
    def __init__(self, width):
        self.net = nn.Linear(width, 4).cuda()
        self.optimizer = torch.optim.Adam(self.net.parameters())

    def save(self, path, epoch):
        weights = {name: value.clone() for name, value in self.net.state_dict().items()}  # maybe: GPU404
        torch.save({"epoch": epoch, "weights": weights}, path)

    def load(self, path):
        state = torch.load(path)  # low: GPU403
        self.net.load_state_dict(state["weights"])
        return state["epoch"]
