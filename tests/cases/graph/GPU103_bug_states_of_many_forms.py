"""States carried from step to step: hidden states of recurrent networks, memories, worlds, with and without a cut."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class State(NamedTuple):
    hidden: Tensor
    cell: Tensor


@dataclasses.dataclass
class Memory:
    keys: Optional[Tensor] = None
    values: "Tensor | None" = None
    steps: int = 0


def repackage(state):
    if isinstance(state, Tensor):
        return state.detach()
    return tuple(repackage(part) for part in state)


class Model(nn.Module):
    def __init__(self, vocabulary, width=256, layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.rnn = nn.LSTM(width, width, layers, batch_first=True)
        self.cell = nn.GRUCell(width, width)
        self.out = nn.Linear(width, vocabulary)
        self.hidden = None
        self.memory = Memory()

    def init_hidden(self, size):
        weight = next(self.parameters())
        return (weight.new_zeros(2, size, 256), weight.new_zeros(2, size, 256))

    def forward(self, x: Tensor, state: Optional[Tuple[Tensor, Tensor]] = None):
        out, state = self.rnn(self.embed(x), state)
        return self.out(out), state

    def step(self, x, h):
        h = self.cell(x, h)
        return h

    def stateful(self, x):
        if self.hidden is None:
            self.hidden = self.init_hidden(x.size(0))
        out, self.hidden = self.rnn(self.embed(x), self.hidden)
        return self.out(out)

    def reset(self):
        self.hidden = None

    def detach_state(self):
        self.hidden = tuple(part.detach() for part in self.hidden)


def without_cut(model, loader, optimizer):
    hidden = None
    for x, y in loader:
        out, hidden = model(x.cuda(), hidden)  # expect: GPU103
        loss = F.cross_entropy(out.transpose(1, 2), y.cuda())
        optimizer.zero_grad()
        loss.backward(retain_graph=True)  # maybe: GPU301
        optimizer.step()


def with_cut(model, loader, optimizer):
    hidden = model.init_hidden(32)
    for x, y in loader:
        hidden = repackage(hidden)
        out, hidden = model(x.cuda(), hidden)
        F.cross_entropy(out.transpose(1, 2), y.cuda()).backward()
        optimizer.step()
    for x, y in loader:
        hidden = tuple([part.data for part in hidden])
        out, hidden = model(x.cuda(), hidden)
        F.cross_entropy(out.transpose(1, 2), y.cuda()).backward()
    for number, (x, y) in enumerate(loader):
        if number % 10 == 0:
            hidden = model.init_hidden(32)
        (h, c) = hidden
        hidden = (h.detach_(), c.detach())
        out, hidden = model(x.cuda(), hidden)
        F.cross_entropy(out.transpose(1, 2), y.cuda()).backward()


def by_attribute(model, loader, optimizer):
    for epoch in range(3):
        model.reset()
        for x, y in loader:
            loss = F.cross_entropy(model.stateful(x.cuda()).transpose(1, 2), y.cuda())  # maybe: GPU103
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    for x, y in loader:
        model.detach_state()
        F.cross_entropy(model.stateful(x.cuda()).transpose(1, 2), y.cuda()).backward()


def unrolled(model, loader, optimizer, steps=16):
    h = torch.zeros(32, 256).cuda()
    total = 0
    for number, x in enumerate(loader):
        h = model.step(x.cuda(), h)  # maybe: GPU103
        total += h.pow(2).mean()
        if number % steps == steps - 1:
            total.backward()
            optimizer.step()
            optimizer.zero_grad()
            total = 0


def world(model, env, optimizer):
    state = State(torch.zeros(1, 256).cuda(), torch.zeros(1, 256).cuda())
    memory = Memory()
    while not env.done:
        observation = env.observe().cuda()
        hidden = model.step(observation, state.hidden)
        state = State(hidden, state.cell * 0.9 + hidden)  # maybe: GPU103
        if memory.keys is None:
            memory.keys = hidden
        else:
            memory.keys = torch.cat([memory.keys, hidden])[-128:]  # maybe: GPU101, GPU103
        memory.values = hidden.detach()
        memory.steps += 1
        loss = -env.reward(hidden)
        loss.backward()
        optimizer.step()
    return memory


def transformer_memory(model, loader, optimizer):
    mems, past = tuple(), None
    for step, data in enumerate(loader):
        loss, *mems = model(data.cuda(), *mems)  # maybe: GPU103
        loss.float().mean().backward()
        mems = [m.detach() for m in mems]
        past = model.encode(data.cuda(), past)  # maybe: GPU103
        past[0].mean().backward()
        optimizer.step()


def scheduled(model, source, target, optimizer):
    for s, t in zip(source, target):
        encoded, hidden = model(s.cuda())
        token = t[:, :1].cuda()
        loss, outputs = 0, []
        for position in range(1, t.size(1)):
            out, hidden = model(token, hidden)
            loss += F.cross_entropy(out[:, -1], t[:, position].cuda())
            outputs.append(out)
            token = t[:, position : position + 1].cuda() if position % 2 else out.argmax(-1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item() / t.size(1), torch.cat(outputs, 1).shape)


@torch.no_grad()
def sample(model, start, length):
    hidden, tokens = None, [start]
    for _ in range(length):
        out, hidden = model(tokens[-1].cuda(), hidden)
        tokens.append(out[:, -1:].softmax(-1).squeeze(1).multinomial(1).cpu())
    return torch.cat(tokens, 1)


def main(loader, env):
    model = Model(10_000).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for train in (without_cut, with_cut, by_attribute, unrolled, transformer_memory):
        train(model, loader, optimizer)
    world(model, env, optimizer)
    scheduled(model, loader, loader, optimizer)
    sample(model, torch.zeros(1, 1).long(), 100)
