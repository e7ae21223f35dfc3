import torch
from torch import nn


class DQN:
    def __init__(self, make, gamma=0.99):
        self.policy_net, self.target_net = make().cuda(), make().cuda()
        self.target_net.load_state_dict(self.policy_net.state_dict())
        self.opt = torch.optim.AdamW(self.policy_net.parameters(), lr=1e-4)
        self.gamma = gamma

    def optimize(self, s, a, r, s2, alive):
        q = self.policy_net(s).gather(1, a)
        nxt = self.target_net(s2).max(1)[0].detach()  # expect: GPU202
        target = r + self.gamma * alive * nxt
        loss = nn.functional.smooth_l1_loss(q, target.unsqueeze(1))
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()
