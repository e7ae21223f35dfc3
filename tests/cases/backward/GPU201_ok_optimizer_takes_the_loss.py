import torch.nn.functional as F
from torch import nn

from .base import Algorithm


class Cloning(Algorithm):
    def __init__(self, policy: nn.Module, optim):
        super().__init__()
        self.policy, self.optim = policy, optim

    def update(self, batch):
        scores = self.policy(batch.obs)
        loss = F.cross_entropy(scores, batch.act)
        self.optim.step(loss)
        return {"loss": loss.item()}
