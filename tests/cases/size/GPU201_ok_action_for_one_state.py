# A policy is asked for the next action, one state of the environment at a time: what it saves is let go of with the action.
import torch
from torch import nn


class Agent:
    def __init__(self, width, actions, device):
        self.device = device
        self.policy = nn.Sequential(nn.Linear(width, 256), nn.ReLU(), nn.Linear(256, actions)).to(device)
        self.optimizer = torch.optim.Adam(self.policy.parameters())
        self.eps = 0.1

    def choose(self, observation):
        scores = self.policy(torch.FloatTensor(observation).to(self.device))  # low: GPU201
        return scores.argmax().detach().cpu().numpy()

    def learn(self, states, returns):
        loss = (self.policy(states).max(1).values - returns).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


def play(agent, env, memory, episodes):
    for _ in range(episodes):
        observation, done = env.reset(), False
        while not done:
            action = agent.choose(observation)
            following, reward, done, _ = env.step(action)
            memory.add(observation, action, reward)
            observation = following
        agent.learn(*memory.sample(64))
