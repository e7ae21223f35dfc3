"""A controller whose states go through one rollout: who learns has a method of it begin them anew, and then goes backward once."""
# file: controller.py
import torch
from torch import nn


class Agent(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.rnn, self.head = nn.GRUCell(width, width), nn.Linear(width, 8)

    def forward(self, rows, state):
        state = self.rnn(rows, state)
        return self.head(state), state


class Controller:
    def __init__(self, width):
        self.agent, self.width = Agent(width).cuda(), width
        self.hidden_states = None

    def forward(self, rows):
        scores, self.hidden_states = self.agent(rows, self.hidden_states)
        return scores

    def init_hidden(self, size):
        self.hidden_states = torch.zeros(size, self.width).cuda()


# file: learner.py
import torch
from controller import Controller
from torch.nn.functional import cross_entropy


class Learner:
    def __init__(self, width):
        self.controller = Controller(width)
        self.optimizer = torch.optim.Adam(self.controller.agent.parameters())

    def train(self, episode, taken):
        self.controller.init_hidden(len(episode))
        scores = [self.controller.forward(rows.cuda()) for rows in episode.unbind(1)]
        loss = cross_entropy(torch.cat(scores), taken.cuda())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


def run(batches):
    learner = Learner(64)
    for episode, taken in batches:
        learner.train(episode, taken)


if __name__ == "__main__":
    run(torch.utils.data.DataLoader([]))
