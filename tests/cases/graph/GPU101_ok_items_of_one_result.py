import torch
from torch import nn


class Frontend(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def layers(self, wave, lengths):
        self.model.eval()
        states = self.model(wave, output_hidden_states=True).hidden_states  # low: GPU201
        states = [state[:, : int(lengths.max()), :] for state in states]
        return states[-1]


def copies(decoder: nn.Module, tokens):
    decoder.cuda().eval()
    _, cache = decoder(tokens)  # note: GPU201
    cache = {key: torch.clone(value) for key, value in cache.items()}
    print(decoder(tokens, cache)[0].argmax(-1).tolist())
