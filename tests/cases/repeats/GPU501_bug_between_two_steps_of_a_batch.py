"""Between two networks' steps of every batch, beside no phase at all."""

import torch
import torch.nn.functional as F


class ClosedLoop:
    def __init__(self, planner, critic):
        self.planner, self.critic = planner.cuda(), critic.cuda()
        self.opt = torch.optim.AdamW(self.planner.parameters(), 1e-5)
        self.critic_opt = torch.optim.AdamW(self.critic.parameters(), 1e-4)

    def run(self, rounds, loader):
        for number in range(rounds):
            for states, plans, rewards in loader:
                value = F.mse_loss(self.critic(states.cuda()).squeeze(-1), rewards.cuda())
                self.critic_opt.zero_grad()
                value.backward()
                self.critic_opt.step()
                torch.cuda.empty_cache()  # expect: GPU501
                loss = F.mse_loss(self.planner(states.cuda()), plans.cuda())
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            print(number, "done")
