"""A policy makes a batch of one of what it is given, in a method of its own: little goes through it at a time."""

import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(256, 512, 2)
        self.head = nn.Linear(512, 2)

    def forward(self, state, hidden):
        out, hidden = self.lstm(state, hidden)
        return self.head(out), hidden

    def get_action(self, state, hidden):
        state = torch.FloatTensor(state).unsqueeze(0).unsqueeze(0).cuda()
        mean, hidden = self.forward(state, hidden)  # note: GPU201
        return torch.tanh(mean).detach().cpu().numpy()[0][0], hidden


def play(env, path):
    policy = Policy().cuda()
    policy.load_state_dict(torch.load(path, map_location="cpu"))
    for _ in range(100):
        state, done, hidden = env.reset(), False, None
        while not done:
            action, hidden = policy.get_action(state, hidden)  # note: GPU201
            state, _, done, _ = env.step(action)


if __name__ == "__main__":
    import gym

    play(gym.make("CartPole-v1"), "policy.pt")
