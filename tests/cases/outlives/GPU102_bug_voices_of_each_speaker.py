"""Frame-level features of every utterance are kept on the GPU by speaker, until all are averaged for a file."""

import numpy as np
import torch
import torchaudio


class Enrolment:
    def __init__(self, network, device="cuda"):
        self.network = network.to(device)
        self.network.eval()
        self.device = device
        self.frames = {}

    @torch.inference_mode()
    def add(self, speaker, paths):
        for path in paths:
            wave, _ = torchaudio.load(path)
            features = self.network.extract_features(wave.to(self.device))
            self.frames.setdefault(speaker, []).append(features)  # low: GPU102

    def write(self, path):
        rows = {s: torch.cat(parts, 1).mean((0, 1)).cpu().numpy() for s, parts in self.frames.items()}
        np.savez(path, **rows)


def main(network, speakers, out):
    enrolment = Enrolment(network)
    for speaker, paths in speakers.items():
        enrolment.add(speaker, paths)
    enrolment.write(out)
