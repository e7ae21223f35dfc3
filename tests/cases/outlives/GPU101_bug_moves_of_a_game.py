"""A player remembers its moves as records, with what its network has said of each; another learns from them before they go."""

import random
from collections import deque, namedtuple
from dataclasses import dataclass

import torch
from torch import nn, optim

Move = namedtuple("Move", "board, odds, gain")


@dataclass
class Guess:
    odds: torch.Tensor
    gain: float


class Player:
    def __init__(self, width):
        self.net = nn.Sequential(nn.Linear(width, 4096), nn.ReLU(), nn.Linear(4096, 4096)).cuda()
        self.optimizer = optim.Adam(self.net.parameters())
        self.past = deque(maxlen=200_000)
        self.guesses = []

    def keep(self, *what):
        self.past.append(Move(*what))

    def learn(self):
        several = random.sample(self.past, 64)
        boards = torch.stack([one.board for one in several])
        gains = torch.tensor([one.gain for one in several], device="cuda")
        loss = (self.net(boards).amax(1) - gains).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def learn_ok_from_its_guesses(self):
        loss = -sum(one.gain * one.odds.amax() for one in self.guesses)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.guesses = []


def play(game, player: Player):
    board = game.begin().cuda()
    while True:
        odds = player.net(board)
        after, gain = game.move(odds.argmax().item())
        player.keep(board, odds, gain)  # expect: GPU101
        board = after.cuda()
        player.learn()


def play_ok_one_game(game, player: Player):
    for _ in range(1000):
        board, over = game.begin().cuda(), False
        while not over:
            odds = player.net(board)
            board, gain, over = game.move(odds.argmax().item())
            player.guesses.append(Guess(odds, gain))
        player.learn_ok_from_its_guesses()


def play_ok_detached(game, player: Player):
    board = game.begin().cuda()
    while True:
        odds = player.net(board).detach()  # expect: GPU202
        after, gain = game.move(odds.argmax().item())
        player.keep(board, odds, gain)
        board = after.cuda()
        player.learn()


if __name__ == "__main__":
    from games import Go

    play(Go(), Player(361))
    play_ok_one_game(Go(), Player(361))
    play_ok_detached(Go(), Player(361))
