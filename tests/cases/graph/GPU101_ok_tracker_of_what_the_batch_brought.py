"""The tracker's other entry is computed from the batch alone: no network has touched it."""

import torch
import torch.nn.functional as F


class Tracker:
    def __init__(self):
        self.sums, self.rounds = {}, 0

    def put(self, row):
        self.rounds += 1
        for name, value in row.items():
            self.sums[name] = self.sums.get(name, 0) + value

    def flush(self):
        done = {name: float(total) / self.rounds for name, total in self.sums.items()}
        self.sums, self.rounds = {}, 0
        return done


def train(net: torch.nn.Module, loader, opt, epochs):
    net.cuda()
    tracker = Tracker()
    for epoch in range(epochs):
        for cloud, grasp in loader:
            cloud, grasp = cloud.cuda(), grasp.cuda()
            grasp_loss = F.binary_cross_entropy_with_logits(net(cloud), grasp)
            opt.zero_grad()
            grasp_loss.backward()
            opt.step()
            spread = (cloud - cloud.mean(1, keepdim=True)).norm(dim=-1).mean()
            tracker.put({"grasp": grasp_loss.detach().cpu().item(), "spread": spread.cpu()})
        print(epoch, tracker.flush())
