import copy

from torch import nn


class SAC:
    """A target network is a second model by design, not a snapshot."""

    def __init__(self, critic: nn.Module):
        self.critic = critic.cuda()
        self.target = copy.deepcopy(self.critic).requires_grad_(False)
        self.cfg = copy.deepcopy({"tau": 0.005})

    def sync(self):
        self.target.load_state_dict(self.critic.state_dict())
