"""What one mini-batch's update gives, the batch among it, is bound until the next has run."""

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
        return part, values, loss

    def improve(self, rollout, rounds, batch_size):
        for k in range(rounds):
            for b in range(0, len(rollout), batch_size):
                part, values, loss = self._update(rollout[b : b + batch_size])  # low: GPU401
                if k == rounds - 1:
                    self.report(part, values, loss)
