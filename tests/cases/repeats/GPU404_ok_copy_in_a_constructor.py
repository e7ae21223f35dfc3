import copy

from torch import nn
from transformers import AutoModel


class Encoder(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.transformer = AutoModel.from_pretrained(name)
        self.pretrained = copy.deepcopy(self.transformer.state_dict())

    def reload(self):
        self.transformer.load_state_dict(self.pretrained)

    def forward(self, x, mask):
        return self.transformer(x.to(self.transformer.device), mask.to(x.device)).last_hidden_state
