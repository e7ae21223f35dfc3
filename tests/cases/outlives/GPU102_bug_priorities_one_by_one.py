"""The memory takes the tensor of priorities apart and hands each to its tree, which keeps it as it is."""
# file: tree.py
class SumTree:
    def __init__(self, size):
        self.size, self.nodes, self.at = size, [0] * (2 * size - 1), 0

    def put(self, index, value):
        self.nodes[index] = value
        while index:
            index = (index - 1) // 2
            self.nodes[index] = self.nodes[2 * index + 1] + self.nodes[2 * index + 2]
# file: memory.py
from tree import SumTree


class Memory:
    def __init__(self, size, power=0.5):
        self.tree, self.power = SumTree(size), power

    def draw(self, count):
        return self.source.take(count)

    def update_priorities(self, indices, priorities):
        priorities = priorities ** self.power
        for index, priority in zip(indices, priorities):
            self.tree.put(index, priority)
# file: agent.py
import torch


class Agent:
    def __init__(self, net):
        self.net = net.cuda()
        self.opt = torch.optim.Adam(net.parameters())

    def learn(self, memory):
        index, x, wanted, weight = memory.draw(64)
        gap = (self.net(x.cuda()) - wanted.cuda()).pow(2).sum(1)
        self.opt.zero_grad()
        (weight.cuda() * gap).mean().backward()
        self.opt.step()
        memory.update_priorities(index, gap.detach())  # expect: GPU102
# file: main.py
import torch
from agent import Agent
from memory import Memory
from torch import nn

memory = Memory(100_000)
agent = Agent(nn.Linear(128, 4))
for _ in range(10_000):
    agent.learn(memory)
    torch.cuda.synchronize
