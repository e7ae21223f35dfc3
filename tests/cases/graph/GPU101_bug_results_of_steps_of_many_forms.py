"""Steps that return values with or without their graph, and callers that read, keep or add what they get."""

from collections import defaultdict, deque

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class Agent:
    def __init__(self, policy, value, optimizer):
        self.policy, self.value, self.optimizer = policy.cuda(), value.cuda(), optimizer
        self.stats = {}
        self.log_of_steps = []
        self.last_loss = None
        self.best = None
        self.totals = defaultdict(float)
        self.window = deque(maxlen=20)
        self.entropy_history = []

    def update(self, batch):
        dist = torch.distributions.Categorical(logits=self.policy(batch["obs"]))
        log_prob, entropy = dist.log_prob(batch["actions"]), dist.entropy().mean()
        value_loss = F.mse_loss(self.value(batch["obs"]).squeeze(-1), batch["returns"])
        policy_loss = -(log_prob * batch["advantages"]).mean()
        loss = policy_loss + 0.5 * value_loss - 0.01 * entropy
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.policy.parameters(), 0.5)
        self.optimizer.step()
        self.stats = {"policy": policy_loss.item(), "value": value_loss.item(), "entropy": entropy}
        self.last_loss = loss
        self.window.append(loss.detach())
        return {
            "loss": loss.item(),
            "policy": policy_loss.detach().cpu().numpy(),
            "value": float(value_loss),
            "entropy": entropy,  # maybe: GPU101
            "kl": (batch["old"] - log_prob).mean(),  # maybe: GPU101
        }

    def pretrain(self, batch, report=None):
        loss = F.mse_loss(self.policy(batch["obs"]), batch["target"])
        loss.backward()
        self.optimizer.step()
        info = dict(loss=loss, step=1)
        info["norm"] = sum(p.grad.norm() for p in self.policy.parameters())
        if report is not None:
            report.update({"loss": loss.item(), "raw": loss})  # maybe: GPU101
        return info

    def losses(self, batch):
        first = F.mse_loss(self.policy(batch["obs"]), batch["target"])
        second = self.value(batch["obs"]).abs().mean()
        self.log_of_steps.append({"first": first.item(), "second": second})  # maybe: GPU101
        return first, second

    def learn(self, batches):
        history = []
        for batch in batches:
            info = self.update(batch)
            history.append(info)  # maybe: GPU101
            for key, value in info.items():
                self.totals[key] += value  # maybe: GPU101
            self.pretrain(batch)
            first, second = self.losses(batch)
            (first + second).backward()
            self.entropy_history.append(self.stats["entropy"])  # maybe: GPU101
            if self.best is None or first < self.best:
                self.best = first  # maybe: GPU101
        return {key: np.mean([float(one[key]) for one in history]) for key in history[0]}


def supervised_step(model, batch, optimizer, scaler=None):
    images, labels = batch[0].cuda(), batch[1].cuda()
    with torch.autocast("cuda"):
        logits = model(images)
        loss = F.cross_entropy(logits, labels)
    if scaler is not None:
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    else:
        loss.backward()
        optimizer.step()
    optimizer.zero_grad()
    accuracy = (logits.argmax(1) == labels).float().mean()
    return loss, accuracy, logits


def yielding(model, loader):
    for x, y in loader:
        loss = F.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()
        yield {"loss": loss, "n": len(x)}


def only_reads(model, loader, optimizer):
    for batch in loader:
        loss, accuracy, _ = supervised_step(model, batch, optimizer)
        if loss < 0.1 and not torch.isnan(loss):
            print(f"{loss.item()} {accuracy:.2f}")
        assert loss.shape == ()
    return loss.item()


def first_only(model, loader, optimizer):
    total, pieces = 0.0, []
    for batch in loader:
        total += supervised_step(model, batch, optimizer)[0].item()
        pieces.append(supervised_step(model, batch, optimizer)[1])  # maybe: GPU102
        *_, logits = supervised_step(model, batch, optimizer)
        torch.save(logits, "logits.pt")
    return total, pieces


def sums(model, loader, optimizer):
    losses, averaged, smoothed = [], 0, torch.zeros(1).cuda()
    for batch in loader:
        loss, accuracy, logits = supervised_step(model, batch, optimizer)
        losses += [loss]  # expect: GPU101
        averaged = averaged + accuracy.item()
        smoothed = 0.9 * smoothed + 0.1 * loss  # expect: GPU101
    return torch.stack(losses).mean(), averaged, smoothed


def generators(model, loader):
    kept = []
    for one in yielding(model, loader):
        kept.append(one["loss"])  # maybe: GPU101
    return kept


class Runner:
    metrics = ()

    def __init__(self, model, optimizer):
        self.model, self.optimizer = model.cuda(), optimizer
        self.outputs = {}
        self.maps = {}
        self.cached = dict()
        self.named = {"a": None}
        self.steps = 0

    def run_step(self, batch):
        loss, accuracy, logits = supervised_step(self.model, batch, self.optimizer)
        self.steps += 1
        self.maps[self.steps] = torch.softmax(logits, -1)  # expect: GPU101|GPU106
        self.cached["last"] = logits
        for name, layer in self.model.named_children():
            self.outputs[name] = layer(batch[0].cuda())
        return {"loss": loss, "accuracy": accuracy.item()}

    def remember(self, key, value):
        scores = torch.bmm(value, value.transpose(1, 2))
        if key not in self.cached:
            self.cached[key] = value
        self.named[key] = scores.detach()
        self.maps.pop(key, None)
        return scores

    def attend(self, x, t):
        attention = self.model(x).softmax(-1)
        self.maps[t] = attention  # expect: GPU101|GPU106@b
        self.maps[t] = self.maps[t].cpu()  # expect: GPU101@b
        return attention.mean()

    def run(self, loader, hooks=()):
        results = []
        for batch in loader:
            out = self.run_step(batch)
            results.append(out["loss"])  # expect: GPU101
            self.remember("query", batch[0])
            self.remember("key", batch[0])
            for hook in hooks:
                hook(out)
            self.maps.clear()
        return results


def with_queue(model, loader, optimizer, queue):
    for batch in loader:
        loss, _, _ = supervised_step(model, batch, optimizer)
        queue.put(loss)  # maybe: GPU101
        queue.put({"loss": loss.item(), "graph": loss})  # maybe: GPU101


def main(model, loader, env):
    optimizer = torch.optim.Adam(model.parameters())
    agent = Agent(model, nn.Linear(8, 1), optimizer)
    report = {}
    for epoch in range(10):
        print(agent.learn(env), agent.pretrain(next(iter(env)), report), only_reads(model, loader, optimizer))
        print(sums(model, loader, optimizer)[0].item(), len(generators(model, loader)))
    return Runner(model, optimizer).run(loader), first_only(model, loader, optimizer)
