"""A class of the program on a library's network, loaded by a method it has from that: its weights are some hundred millions."""

from torch import nn
from transformers import BartModel, BartPretrainedModel


class Scorer(BartPretrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.model = BartModel(config)
        self.head = nn.Linear(config.d_model, 2)

    def forward(self, tokens):
        return self.head(self.model(tokens)[0])


def scores(path, texts):
    net = Scorer.from_pretrained(path)
    net.to("cuda")
    net.eval()
    found = []
    for tokens in texts:
        found.append(net(tokens.to("cuda")).detach().cpu()[0])  # note: GPU201
    return found
