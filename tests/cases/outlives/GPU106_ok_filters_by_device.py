"""A filter bank for each device, which is made for what a network gives and is none of it."""

import librosa
import torch
import torch.nn as nn

BANKS = {}


def spectrogram(wave, most):
    if str(wave.device) not in BANKS:
        bank = librosa.filters.mel(sr=22050, n_fft=1024, n_mels=80, fmax=most)
        BANKS[f"{most}_{wave.device}"] = torch.from_numpy(bank).float().to(wave.device)
    return torch.matmul(BANKS[f"{most}_{wave.device}"], wave.unfold(-1, 1024, 256).abs().transpose(-1, -2))


def train(generator, loader, optimizer):
    for mel, wave in loader:
        loss = nn.functional.l1_loss(spectrogram(generator(mel.cuda()), 8000), spectrogram(wave.cuda(), 8000))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
