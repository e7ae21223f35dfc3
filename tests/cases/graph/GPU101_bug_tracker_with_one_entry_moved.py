"""A tracker sums what it is given by name; the grasp loss is a number, the reconstruction is only moved to the host."""

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


def train(net: torch.nn.Module, decoder: torch.nn.Module, loader, opt, epochs):
    net.cuda(), decoder.cuda()
    tracker = Tracker()
    for epoch in range(epochs):
        for cloud, grasp in loader:
            cloud, grasp = cloud.cuda(), grasp.cuda()
            code, quality = net(cloud)
            grasp_loss = F.binary_cross_entropy_with_logits(quality, grasp)
            rebuilt = F.smooth_l1_loss(decoder(code), cloud)
            opt.zero_grad()
            (grasp_loss + rebuilt).backward()
            opt.step()
            tracker.put({"grasp": grasp_loss.detach().cpu().item(), "rebuilt": rebuilt.cpu()})  # expect: GPU101|GPU104
        print(epoch, tracker.flush())
