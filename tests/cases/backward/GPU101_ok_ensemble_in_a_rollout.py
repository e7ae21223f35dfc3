"""A rollout of five steps through an ensemble: each list has one entry for each network, and becomes one tensor."""

import torch


class Planner:
    def __init__(self, nets, judges, actor):
        self.nets, self.judges, self.actor = nets, judges, actor

    def plan(self, batch):
        seen = [batch for _ in self.nets]
        found = []
        for _ in range(5):
            moves = [self.actor(s)[0] for s in seen]
            both = [torch.cat([s, m], dim=1) for s, m in zip(seen, moves)]
            rewards = [net(b) for net, b in zip(self.judges, both)]  # maybe: GPU201
            rewards = torch.cat(rewards, dim=1)
            found.append(rewards)
            seen = [net(b)[0] for net, b in zip(self.nets, both)]  # maybe: GPU201
        worth = torch.stack(found).mean(dim=0)
        return worth.detach()

    def learn(self, batch, optimizers):
        for net, judge, optimizer in zip(self.nets, self.judges, optimizers):
            optimizer.zero_grad()
            (net(batch)[0].mean() + judge(batch).mean()).backward()
            optimizer.step()
