"""Loss and penalty are summed with their graphs and written out every thousand steps; the backward of each step frees a part."""

import torch
import torch.nn.functional as F
from torch.utils.tensorboard import SummaryWriter


def train(generator, critic, pairs, steps, log_every=1000):
    generator.cuda(), critic.cuda()
    opt = torch.optim.Adam(generator.parameters(), 1e-4)
    writer = SummaryWriter()
    sums = {"pixel": 0.0, "feature": 0.0}
    for step, (small, large) in zip(range(1, steps + 1), pairs):
        made, large = generator(small.cuda()), large.cuda()
        pixel = F.l1_loss(made, large)
        feature = F.l1_loss(critic.features(made), critic.features(large).detach())  # maybe: GPU202
        opt.zero_grad()
        (pixel + 0.1 * feature).backward()
        opt.step()
        sums["pixel"] += pixel.data
        sums["feature"] += feature  # expect: GPU101
        if step % log_every == 0:
            for name, total in sums.items():
                writer.add_scalar(name, total / log_every, step)
                sums[name] = 0.0
