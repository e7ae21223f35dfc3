"""What comes back are figures that each round reads."""

import torch


class Learner:
    def __init__(self, net, lr):
        self.net = net.cuda()
        self.opt = torch.optim.Adam(net.parameters(), lr)

    def _update(self, part):
        values = self.net(part)
        loss = values.pow(2).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item(), values.mean().item()

    def improve(self, rollout, rounds, batch_size):
        for _ in range(rounds):
            for b in range(0, len(rollout), batch_size):
                loss, mean = self._update(rollout[b : b + batch_size])
                print(loss, mean)
