"""One of several outputs of a network is scored by a helper, and a meter of another file keeps the score. The project is a
package itself, and its folder is called otherwise."""
# file: setup.py
from setuptools import setup

setup(name="speaker", package_dir={"speaker": "."})
# file: __init__.py
# file: meters.py
class Averages:
    def __init__(self):
        self.values, self.rounds = {}, {}

    def take(self, name, value):
        self.values[name] = self.values.get(name, 0.0) * self.rounds.get(name, 0) + value
        self.rounds[name] = self.rounds.get(name, 0) + 1
        self.values[name] /= self.rounds[name]
# file: scores.py
def sharpness(attention):
    return attention.max(dim=1)[0].mean(dim=1).mean(dim=0)
# file: train.py
import torch
from speaker.meters import Averages
from speaker.model import Speaker
from speaker.scores import sharpness


def train(loader):
    model = Speaker().cuda()
    optimizer = torch.optim.Adam(model.parameters())
    averages = Averages()
    for text, sound in loader:
        heard, attention = model(text.cuda(), sound.cuda())
        loss = torch.nn.functional.l1_loss(heard, sound.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        averages.take("loss", loss.item())
        averages.take("sharpness", sharpness(attention))  # low: GPU104
    return averages
