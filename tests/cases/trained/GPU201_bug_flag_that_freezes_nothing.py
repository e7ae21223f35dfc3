"""A constructor would freeze the network that is run where a flag says so, which nobody sets, or another one runs beside it."""
# file: networks.py
from dataclasses import dataclass

import torch
from torch import nn
from transformers import AutoModel


@dataclass
class Settings:
    freeze_eye: bool = True
    freeze_ear: bool = False


class Reader(nn.Module):
    def __init__(self, settings, width):
        super().__init__()
        self.eye = AutoModel.from_pretrained("eye")
        self.ear = AutoModel.from_pretrained("ear")
        self.to_words = nn.Linear(1024, width)
        if settings.freeze_eye:
            for weight in self.eye.parameters():
                weight.requires_grad = False
        if settings.freeze_ear:
            self.ear.requires_grad_(False)

    def what_it_sees(self, pictures):
        return self.to_words(self.eye(pictures).pooler_output)

    def what_it_hears(self, sounds):
        return self.to_words(self.ear(sounds).pooler_output)

    def what_it_makes_of(self, pictures, sounds):
        return self.eye(pictures).pooler_output + self.ear(sounds).pooler_output
# file: index.py
import numpy
import torch
from networks import Reader, Settings


def load():
    reader = Reader(Settings(), 512)
    reader.load_state_dict(torch.load("reader.pt", map_location="cpu"))
    return reader.eval().cuda()


def heard(sounds):
    found = []
    reader = load()
    for sound in sounds:
        found.append(reader.what_it_hears(sound.cuda()).cpu().detach().numpy())  # expect: GPU201
    return numpy.concatenate(found)


def understood(films):
    found = []
    reader = load()
    for pictures, sounds in films:
        found.append(reader.what_it_makes_of(pictures.cuda(), sounds.cuda()).cpu().detach().numpy())  # expect: GPU201
    return numpy.concatenate(found)
