"""What lives longer than it needs to: logits through a backward, views of batches, modules in circles, a step's results."""

import gc
import random
from collections import deque

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader


def language_model_steps(model, loader, optimizer, vocab_size):
    model.cuda()
    for batch in loader:
        ids = batch["input_ids"].cuda()
        logits = model(ids).logits
        shifted = logits[:, :-1, :].contiguous()
        loss = F.cross_entropy(shifted.view(-1, shifted.size(-1)), ids[:, 1:].reshape(-1))  # expect: GPU401
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def with_a_head(model, head, loader, optimizer):
    for x, y in loader:
        hidden = model(x.cuda())
        logits = head(hidden)
        loss = F.cross_entropy(logits.view(-1, 50257), y.cuda().view(-1))
        accuracy = (logits.argmax(-1) == y.cuda()).float().mean()  # expect: GPU401
        loss.backward()
        print(accuracy.item())
        optimizer.step()


def ids_of_all(loader, model):
    ids, names, targets, tensors, arrays = [], [], [], [], []
    for index, (x, y, batch_ids, batch_names) in enumerate(loader):
        out = model(x.cuda())  # expect: GPU201
        ids.extend(batch_ids)  # maybe: GPU102, GPU106, GPU401
        names.extend(batch_names)
        y = y.tolist()
        targets.extend(y)
        tensors.extend(batch_ids.cuda())
        arrays.extend(out.detach().cpu().numpy())
        print(batch_ids.size(0))
    return ids, names, targets, torch.stack(tensors), arrays


class Buffer:
    def __init__(self, capacity, device="cuda"):
        self.memory = deque(maxlen=capacity)
        self.rows = []
        self.priorities = {}
        self.device = device
        self.position = 0

    def push(self, states, actions, rewards):
        for i in range(states.size(0)):
            self.memory.append((states[i], actions[i], rewards[i]))  # maybe: GPU401, GPU102
            self.rows.append(states[i].clone())
            row = states[i]
            self.priorities[self.position] = row  # maybe: GPU106, GPU102
            self.position = (self.position + 1) % 1000

    def push_detached(self, states):
        states = states.detach().squeeze(0)
        self.rows.append(states[0])
        self.rows.append(states.data[1].cpu().numpy())

    def sample(self, size):
        picked = random.sample(self.memory, size)
        states, actions, rewards = zip(*picked)
        return torch.stack(states).to(self.device), torch.stack(actions), torch.tensor(rewards)


def collect(env, policy, buffer, loader):
    for batch in loader:
        states = batch.to("cuda")
        with torch.no_grad():
            actions = policy(states)
        buffer.push(states, actions, env.step(actions.cpu()))
        buffer.push_detached(policy(states))
    return buffer.sample(32)


class Child(nn.Module):
    def __init__(self, parent, width):
        super().__init__()
        self.parent = [parent]
        self.owner = parent
        self.layer = nn.Linear(width, width)
        self.act = lambda x: self.layer(x).relu()

    def forward(self, x):
        return self.act(x)


class Parent(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.children_ = nn.ModuleList([Child(self, width) for _ in range(3)])
        self.optimizer = torch.optim.Adam(self.parameters())
        self.hooks = [child.register_forward_hook(self.note) for child in self.children_]  # maybe: GPU105
        self.norms = []

    def note(self, module, inputs, output):
        self.norms.append(output.norm().item())

    def forward(self, x):
        for child in self.children_:
            x = child(x)
        return x


def search(loader, widths):
    found = {}
    for width in widths:
        net = Parent(width).cuda()
        for x, y in loader:
            F.cross_entropy(net(x.cuda()), y.cuda()).backward()
            net.optimizer.step()
        found[width] = sum(net.norms)
        del net
        gc.collect()
        torch.cuda.empty_cache()
    return found


class Explain:
    def __init__(self, model):
        self.model = model
        self.nodes = []
        self.gradients = None

    def walk(self, loss):
        node = loss.grad_fn
        while node is not None and node.next_functions:
            self.nodes.append(node)
            node = node.next_functions[0][0]
        loss.grad_fn.register_hook(lambda grads, _: setattr(self, "gradients", grads[0]))
        output = self.model.last
        output.register_hook(self.save)

    def save(self, grad):
        self.gradients = grad


def multi_loss(model, loader, optimizer, accelerator):
    for x, y in loader:
        out = model(x.cuda())
        first = F.mse_loss(out, y.cuda())
        second = F.l1_loss(out, y.cuda())
        first.backward(retain_graph=True)
        second.backward(retain_graph=True)  # maybe: GPU301
        third = out.abs().mean()
        accelerator.backward(third, retain_graph=True)  # maybe: GPU301
        optimizer.step()
        optimizer.zero_grad()


class Slow(nn.Module):
    def __init__(self, rounds: int = 3, weight=0.5):
        super().__init__()
        self.net = nn.Linear(10, 10)
        self.rounds, self.weight = rounds, weight

    def optimize(self, batch, optimizer, retain=False):
        self.total = self.net(batch).mean()
        self.part = self.total * self.weight
        for number in range(self.rounds):
            number += 0
            self.part.backward(retain_graph=True)  # maybe: GPU301
        self.total.backward(retain_graph=retain)
        optimizer.step()

    def validation(self, loader):
        total = 0.0
        for batch in loader:
            result = self.net(batch.cuda())
            loss = result.mean()
            total += loss.item()
        return total


def main(args):
    loader = DataLoader([torch.zeros(10)] * 100, batch_size=4, num_workers=2)
    slow = Slow(args.rounds).cuda()
    optimizer = torch.optim.Adam(slow.parameters())
    for batch in loader:
        slow.optimize(batch.cuda(), optimizer)
    slow.validation(loader)
    print(search(loader, [8, 16]))
