"""What a recurrent pilot has in mind goes into a ring of episodes, as many as somebody writes with an exponent."""

import torch
from torch import nn

LAPS = 5e5


class Ring:
    def __init__(self, room):
        self.room, self.at = room, 0
        self.laps = []

    def add(self, mind, lap):
        if len(self.laps) < self.room:
            self.laps.append(None)
        self.laps[self.at] = (mind, lap)
        self.at = int((self.at + 1) % self.room)


class Pilot(nn.Module):
    def __init__(self):
        super().__init__()
        self.memory = nn.GRU(64, 2048)
        self.wheel = nn.Linear(2048, 3)

    def forward(self, seen, mind):
        out, mind = self.memory(seen, mind)
        return self.wheel(out), mind


def drive(track, pilot, ring, few):
    for _ in range(100_000):
        seen, mind, lap = track.start(), torch.zeros(1, 1, 2048).cuda(), []
        while not track.done():
            turn, mind = pilot(seen.cuda(), mind)  # expect: GPU201
            seen = track.turn(turn.argmax().item())
            lap.append(seen)
        ring.add(mind, lap)  # expect: GPU101
        few.add(mind.detach(), lap)


if __name__ == "__main__":
    from tracks import Oval

    drive(Oval(), Pilot().cuda(), Ring(LAPS), Ring(4e5))
