import torch
from torch import nn


class Agent(nn.Module):
    def __init__(self, n_obs, n_act, d=128):
        super().__init__()
        self.rnn, self.pi, self.d = nn.LSTMCell(n_obs, d), nn.Linear(d, n_act), d
        self.state = (torch.zeros(1, d).cuda(), torch.zeros(1, d).cuda())

    def forward(self, obs):
        self.state = self.rnn(obs, self.state)  # expect: GPU103@s
        return self.pi(self.state[0])


def imitate(agent: Agent, demos, opt):
    agent.cuda()
    for obs, act in demos:
        logits = agent(obs.cuda())  # expect: GPU103@s
        loss = nn.functional.cross_entropy(logits, act.cuda())
        opt.zero_grad()
        loss.backward(retain_graph=True)  # maybe: GPU301
        opt.step()
