import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(width, 256), nn.ReLU(), nn.Linear(256, 1))

    def forward(self, state):
        return self.layers(state)


class Agent:
    """The copy is trained as well; one of two uses of the mixed value is not cut off."""

    def __init__(self, width):
        self.net, self.twin = Net(width).cuda(), Net(width).cuda()
        for new, old in zip(self.twin.parameters(), self.net.parameters()):
            new.data.copy_(old.data)
        self.optimizer = torch.optim.Adam([*self.net.parameters(), *self.twin.parameters()])

    def learn(self, states, rewards):
        first = self.net(states)
        second = self.twin(states)
        smaller = torch.min(first, second) - 0.1
        loss = F.mse_loss(rewards, smaller) + smaller.detach().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
