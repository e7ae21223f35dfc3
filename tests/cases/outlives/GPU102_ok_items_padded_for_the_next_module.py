import torch
from torch import nn


class Aligner:
    def __init__(self, features: nn.Module, encoder: nn.Module, prepare, device="cuda"):
        self.features, self.encoder = features.to(device).eval(), encoder.to(device).eval()
        self.prepare, self.device = prepare, device

    def align(self, recordings):
        found = []
        for recording in recordings:
            x = self.prepare(recording).to(self.device)
            with torch.no_grad():
                found.append(self.features(x).squeeze(0))
        padded = nn.utils.rnn.pad_sequence(found, batch_first=True)
        with torch.no_grad():
            return self.encoder(padded).argmax(-1).tolist()
