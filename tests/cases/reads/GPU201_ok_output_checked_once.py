"""What a network gives is looked at once for its shape, before the training."""

from typing import NamedTuple

import gym
import torch
import torch.nn as nn


class Output(NamedTuple):
    values: torch.Tensor
    states: tuple[torch.Tensor, torch.Tensor]


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.memory = nn.Conv2d(1, 32, 8, stride=4), nn.LSTM(32 * 20 * 20, 512)

    def forward(self, frames):
        values, states = self.memory(self.body(frames).flatten(1).unsqueeze(0))
        return Output(values, states)


def main(environment):
    network = Network()
    frame = environment.reset()
    output = network(torch.from_numpy(frame[None, None]).float())
    assert output.values.shape == (1, 1, 512)
    assert len(output.states) == 2
    return network


if __name__ == "__main__":
    main(gym.make("Pong-v5"))
