"""Modules that only compute, with tables, windows and sizes: on data that wants no gradient they make no graph, in
whatever class they stand."""

from typing import Optional, Sequence, Union

import cv2
import numpy as np
import torch
import torch.nn.functional as F
import torchaudio
from torch import nn

QUANTA = np.array([[16, 11, 10, 16], [12, 12, 14, 19], [14, 13, 16, 24], [14, 17, 22, 29]])


class Cosines(nn.Module):
    """Tables as plain tensors on the GPU, some by a method of its own, some set later."""

    def __init__(self, forwards, rounding=None, size=4):
        super().__init__()
        assert forwards ^ (rounding is None), "only forwards it rounds"
        self.forwards = forwards
        self.rounding = rounding
        self.size = size
        self.device = "cuda"
        self.quanta = self.table(QUANTA)
        self.grid = (np.pi * torch.arange(size).type(torch.FloatTensor) / size).view(1, 1, size).to(self.device)

    def table(self, values):
        return torch.from_numpy(values / 100).view(1, values.shape[0], values.shape[1]).to(self.device)

    def set_quality(self, quality):
        self.quality = quality
        self.factor = 5000 / quality * (quality < 50).type(self.quality.type())

    def forward(self, picture):
        picture = picture.to(self.device)
        if self.forwards:
            found = torch.cos(self.grid * torch.arange(self.size, device=self.device)[:, None]) @ picture
            return torch.round(found / self.quanta) if self.rounding else found / self.quanta
        return (picture * self.quanta).clamp(0, 255)


class MaskedMean(nn.Module):
    def __init__(self, width: int, stride: Optional[int] = None, padding: Union[int, Sequence[int]] = 0):
        super().__init__()
        self.width = width
        self.stride = stride or width
        self.padding = padding

    def forward(self, values):
        ones = torch.ones(1, 1, self.width, device=values.device)
        mask = ~torch.isnan(values)
        total = F.conv1d(torch.where(mask, values, 0.0), ones, stride=self.stride, padding=self.padding)
        return total / F.conv1d(mask.float(), ones, stride=self.stride, padding=self.padding).clamp(min=1)


class LogMel(nn.Module):
    """Around a transform of a library, which has buffers."""

    def __init__(self, **settings):
        super().__init__()
        self.inner = torchaudio.transforms.MelSpectrogram(**settings)

    def forward(self, sound):
        return self.inner(sound).clamp(min=1e-5).log()


class Features(nn.Module):
    """Made of nothing but such modules."""

    def __init__(self, mels):
        super().__init__()
        self.mel = LogMel(n_mels=mels)
        self.post = nn.Sequential(nn.AvgPool1d(2), nn.Flatten())
        self.stages = nn.ModuleList([MaskedMean(3, 1, 1) for _ in range(2)])

    def forward(self, sound):
        found = self.mel(sound)
        for stage in self.stages:
            found = stage(found)
        return self.post(found)


def compare(names):
    pack, unpack = Cosines(True, rounding=True), Cosines(forwards=False)
    pack.set_quality(torch.tensor(90))
    energy = 0
    for name in names:
        picture = cv2.imread(name).astype(float)
        packed = pack(torch.from_numpy(picture).cuda())
        energy += 1 - (packed**2).sum()
        restored = unpack(packed).data.cpu().numpy()
        print(np.abs(restored - picture).mean())
    return energy / len(names)


class Pitch:
    def __init__(self, tracker, device=None):
        self.tracker = tracker
        self.smooth = MaskedMean(3, 1, 1).to(device)

    def __call__(self, sounds):
        found = []
        for sound in sounds:
            found.append(self.smooth(torch.from_numpy(self.tracker(sound)).cuda()).cpu().numpy())
        return found


def statistics(loader):
    features = Features(80).cuda().eval()
    mel = torchaudio.transforms.MelSpectrogram(n_mels=80).cuda()
    resample = torchaudio.transforms.Resample(48_000, 16_000).to("cuda")
    total = 0.0
    for sound, _ in loader:
        sound = resample(sound.cuda())
        total += features(sound).mean()
        print(mel(sound).mean().item())
    return total / len(loader)
