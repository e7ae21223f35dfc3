"""Records of a game's moves are learned from, with their graphs, as each game is over; or hold numbers alone."""

from collections import namedtuple

import torch
from torch import nn, optim

Move = namedtuple("Move", ["odds", "gain"])
Figure = namedtuple("Figure", "loss size")


def play(game, games=1000):
    net = nn.Sequential(nn.Linear(361, 4096), nn.ReLU(), nn.Linear(4096, 362)).cuda()
    optimizer = optim.Adam(net.parameters())
    figures = []
    for _ in range(games):
        moves, board, over = [], game.begin().cuda(), False
        while not over:
            choice = torch.distributions.Categorical(logits=net(board))
            move = choice.sample()
            board, gain, over = game.move(move.item())
            moves.append(Move(choice.log_prob(move), gain))
        loss = sum(-odds * gain for odds, gain in moves)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        figures.append(Figure(loss.item(), len(moves)))
    return figures


if __name__ == "__main__":
    from games import Go

    play(Go())
