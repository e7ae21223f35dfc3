# Objects that call networks are handed to a function of another file, under another name, which runs them with grad enabled.
# file: models.py
import torch
import torch.nn as nn
import torch.nn.functional as F


class Together:
    def __init__(self, sound, text):
        self.sound_model = sound
        self.text_model = text

    def __call__(self, both):
        sound, text = both
        one = F.log_softmax(self.sound_model(sound.cuda()), 1)  # expect: GPU201
        other = F.log_softmax(self.text_model(text.cuda()), 1)
        return self.merged(one, other)

    def eval(self):
        self.sound_model.eval()
        self.text_model.eval()

    def merged(self, sound, text):
        raise NotImplementedError


class Mean(Together):
    def merged(self, sound, text):
        return (sound + text) / 2


class Weighted(Together):
    def merged(self, sound, text):
        for _ in range(3):
            sound = 0.9 * sound + 0.1 * text
        return sound


# file: running.py
import torch


def evaluate(model, loader):
    model.eval()
    right = 0
    for batch, labels in loader:
        right += (model(batch).argmax(1).cpu() == labels).sum().item()  # maybe: GPU201
    return right


# file: main.py
import torch
from models import Mean, Weighted
from running import evaluate

sound, text, loader = torch.load("sound.pt"), torch.load("text.pt"), torch.load("loader.pt")
averaged = Mean(sound, text)
weighted = Weighted(sound, text)
for ensemble in [averaged, weighted]:
    print(evaluate(ensemble, loader))
