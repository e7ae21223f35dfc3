"""What one update gives is an argument of the next."""

import torch


class Server:
    def __init__(self, users, opt):
        self.users, self.opt = users, opt

    def update(self, users, batch_size, first, second):
        loss = sum(user.loss(batch_size) for user in users)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return users, first + loss.detach(), second + 1

    def train(self, rounds, batch_size):
        first, second, users = torch.zeros(1).cuda(), 0, self.users
        for _ in range(rounds):
            for start in range(0, len(self.users), batch_size):
                users, first, second = self.update(users, batch_size, first, second)
        return first
