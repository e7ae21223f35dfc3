"""Networks that are made out of sight: a backward through what the same method gives later shows that it does not cut off."""

import torch
import torch.nn.functional as F


class Agent:
    def __init__(self, config):
        self.task = config.task()
        self.actor, self.critic = config.actor().cuda(), config.critic().cuda()
        self.opt = torch.optim.Adam([*self.actor.parameters(), *self.critic.parameters()])

    def iterate(self, seen, length, config):
        rollout = []
        for _ in range(length):
            value = self.critic.predict(seen)
            action = self.actor(seen).argmax(1).cpu().numpy()  # note: GPU201
            seen, reward = self.task.step(action)
            rollout.append([seen, value, reward])  # note: GPU101
        rollout.append([seen, self.critic.predict(seen), 0.0])
        states, returns = [], []
        for i in reversed(range(len(rollout) - 1)):
            seen, value, reward = rollout[i]
            following = rollout[i + 1][1]
            states.append(seen)
            returns.append(reward + config.discount * following.data)
        for states, returns in zip(states, returns):
            v = self.critic.predict(states)
            loss = 0.5 * (returns - v).pow(2).mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()


class WithoutTraining:
    def __init__(self, config):
        self.task = config.task()
        self.actor, self.critic = config.actor().cuda(), config.critic().cuda()
        self.opt = torch.optim.Adam([*self.actor.parameters(), *self.critic.parameters()])

    def iterate(self, seen, length, config):
        rollout = []
        for _ in range(length):
            value = self.critic.predict(seen)
            action = self.actor(seen).argmax(1).cpu().numpy()  # note: GPU201
            seen, reward = self.task.step(action)
            rollout.append([seen, value, reward])  # low: GPU101
        rollout.append([seen, self.critic.predict(seen), 0.0])
        states, gains = [], []
        for i in reversed(range(len(rollout) - 1)):
            seen, value, reward = rollout[i]
            following = rollout[i + 1][1]
            states.append(seen)
            gains.append(reward + config.discount * following.data - value.data)
        for states, gains in zip(states, gains):
            v = self.critic.predict(states)  # low: GPU202
            loss = -(F.log_softmax(self.actor(states), 1).amax(1) * (gains - v.detach())).mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
