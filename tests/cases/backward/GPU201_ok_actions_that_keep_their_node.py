"""Before torch 0.4 an action drawn was a node of its own, which the reward is given to and backward starts from."""

import torch
from torch import autograd, nn, optim
from torch.autograd import Variable

policy = nn.Sequential(nn.Linear(4, 2), nn.Softmax()).cuda()
optimizer = optim.Adam(policy.parameters())
drawn = []


def act(state):
    chances = policy(Variable(torch.from_numpy(state).float().cuda()))
    action = chances.multinomial()
    drawn.append(action)
    return action.data


def learn(rewards):
    for action, reward in zip(drawn, rewards):
        action.reinforce(reward)
    optimizer.zero_grad()
    autograd.backward(drawn, [None for _ in drawn])
    optimizer.step()
    del drawn[:]
