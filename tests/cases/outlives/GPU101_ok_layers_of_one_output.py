"""Lists over the layers of one output, in a forward and in an evaluation: nothing is kept from batch to batch."""

import torch
from torch import nn
from transformers import AutoModel


class Frontend(nn.Module):
    def __init__(self, layer=-1):
        super().__init__()
        self.model = AutoModel.from_pretrained("wavlm-base").eval()
        self.layer = layer

    def forward(self, sound, lengths):
        layers = self.model(sound, output_hidden_states=True).hidden_states
        layers = [layer[:, : max(lengths)] for layer in layers]
        return layers if self.layer < 0 else layers[self.layer]


def compare(network: nn.Module, loader):
    network.eval()
    for x in loader:
        hidden = network(x).hidden_states  # maybe: GPU201
        norms = {}
        for number, layer in enumerate(hidden):
            norms[number] = layer.norm(dim=-1).mean()
        print({number: norm.item() for number, norm in norms.items()})
    return torch.get_num_threads()
