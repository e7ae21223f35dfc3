"""A loss is returned beside a dict of figures, none of which is cut; the caller puts the dict by, step after step."""
import torch


class Optimising:
    def __init__(self, model: torch.nn.Module, optimizer):
        self.model, self.optimizer = model.cuda(), optimizer

    def loss(self, batch):
        logits, values = self.model(batch["x"].cuda())
        policy_loss = torch.nn.functional.cross_entropy(logits, batch["y"].cuda())
        value_loss = (values - batch["r"].cuda()).pow(2).mean()
        loss = policy_loss + 0.1 * value_loss
        stats = dict(policy=policy_loss, value=value_loss)  # expect: GPU101@a
        return loss, stats

    def step(self, batch):
        loss, stats = self.loss(batch)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return stats

    def run(self, loader):
        every = []
        for batch in loader:
            every.append(self.step(batch))  # expect: GPU101@a
        return every
