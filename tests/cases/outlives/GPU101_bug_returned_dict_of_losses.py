import torch
import torch.nn.functional as F


class Algo:
    def __init__(self, net, opt):
        self.net, self.opt = net.cuda(), opt

    def update(self, batch):
        q1, q2 = self.net(batch["s"].cuda(), batch["a"].cuda())
        l1 = F.mse_loss(q1, batch["y"].cuda())
        l2 = F.mse_loss(q2, batch["y"].cuda())
        self.opt.zero_grad()
        (l1 + l2).backward()
        self.opt.step()
        return {"q1": l1, "q2": l2.item()}  # maybe: GPU101


def run(algo, replay, steps):
    q1, q2 = 0.0, 0.0
    for _ in range(steps):
        info = algo.update(replay.sample())
        q1 += info["q1"]  # expect: GPU101
        q2 += info["q2"]
    print(q1 / steps, q2 / steps)
