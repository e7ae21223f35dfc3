"""What goes into a ring of half a million is cut from its graph."""

import torch
from torch import nn


class Ring:
    def __init__(self, room=5e5):
        self.room, self.at = room, 0
        self.laps = []

    def add(self, mind, lap):
        if len(self.laps) < self.room:
            self.laps.append(None)
        self.laps[self.at] = (mind.detach(), lap)
        self.at = int((self.at + 1) % self.room)


def drive(track):
    pilot, ring = nn.GRU(64, 2048).cuda(), Ring()
    optimizer = torch.optim.Adam(pilot.parameters())
    for _ in range(100_000):
        mind = torch.zeros(1, 1, 2048).cuda()
        out, mind = pilot(track.lap().cuda(), mind)
        loss = out.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ring.add(mind, 1)


if __name__ == "__main__":
    from tracks import Oval

    drive(Oval())
