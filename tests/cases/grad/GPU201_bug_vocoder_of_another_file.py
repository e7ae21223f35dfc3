"""A script synthesises by a method of a network that stands in another file and guards nothing."""
# file: synthesise.py
import argparse
from pathlib import Path

import numpy as np
import soundfile as sf
import torch

from vocoders.flow import FlowVocoder


def main(args):
    vocoder = FlowVocoder(channels=80)
    vocoder.load_state_dict(torch.load(args.weights, map_location="cpu")["vocoder"])
    vocoder.cuda().eval()
    for path in sorted(Path(args.mels).glob("*.npy")):
        mel = torch.from_numpy(np.load(path)).unsqueeze(0).cuda()
        wave = vocoder.infer(mel, sigma=args.sigma)  # note: GPU201
        sf.write(path.with_suffix(".wav"), wave.squeeze(0).cpu().data.numpy(), 22050)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--weights")
    parser.add_argument("--mels")
    parser.add_argument("--sigma", type=float, default=0.8)
    main(parser.parse_args())
# file: vocoders/flow.py
import torch
from torch import nn


class FlowVocoder(nn.Module):
    def __init__(self, channels, layers=8):
        super().__init__()
        self.up = nn.ConvTranspose1d(channels, channels, 1024, 256)
        self.layers = nn.ModuleList(nn.Conv1d(channels + 1, 2, 3, padding=1) for _ in range(layers))

    def infer(self, mel, sigma=1.0):
        cond = self.up(mel)
        audio = sigma * torch.randn(mel.size(0), 1, cond.size(2), device=mel.device)
        for layer in reversed(self.layers):
            shift, scale = layer(torch.cat([cond, audio], 1)).chunk(2, 1)
            audio = (audio - shift) * torch.exp(-scale)
        return audio
