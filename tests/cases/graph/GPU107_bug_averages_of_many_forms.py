"""Running averages: of weights, of features, of losses; in place or anew, under no_grad or not."""

import copy

import torch
import torch.nn.functional as F
from torch import nn


class Prototypes(nn.Module):
    def __init__(self, classes, width, momentum=0.9):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
        self.momentum = momentum
        self.register_buffer("centers", torch.zeros(classes, width))
        self.register_buffer("counts", torch.zeros(classes))
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("var", torch.ones(width))
        self.register_buffer("codebook", torch.randn(classes, width))
        self.scale = nn.Parameter(torch.ones(1))
        self.running = None
        self.average = 0
        self.temperature = 1.0

    def forward(self, x, y):
        features = self.net(x)
        batch_mean = features.mean(0)
        self.mean = self.momentum * self.mean + (1 - self.momentum) * batch_mean  # expect: GPU107|GPU101
        self.var.mul_(self.momentum).add_(features.var(0).detach(), alpha=1 - self.momentum)
        self.centers[y] = self.momentum * self.centers[y] + (1 - self.momentum) * features  # maybe: GPU107
        self.counts += F.one_hot(y, self.counts.numel()).sum(0)
        if self.running is None:
            self.running = batch_mean  # maybe: GPU107, GPU101
        else:
            self.running = torch.lerp(self.running, batch_mean, 0.1)  # expect: GPU107|GPU101
        self.average = self.average * 0.99 + features.norm() * 0.01  # expect: GPU107|GPU101
        with torch.no_grad():
            self.codebook.copy_(self.codebook * 0.9 + 0.1 * features.mean())
            self.temperature = 0.5 * self.temperature + 0.5 * features.std().item()
        return features @ self.centers.t() * self.scale


class Statistics(nn.BatchNorm2d):
    def __init__(self, width):
        super().__init__(width)
        self.register_buffer("steps", torch.zeros(1))

    def forward(self, x):
        mean = x.mean((0, 2, 3))
        var = x.var((0, 2, 3), unbiased=False)
        if self.training:
            self.running_mean = (1 - self.momentum) * self.running_mean + self.momentum * mean  # maybe: GPU107
            self.running_var += self.momentum * (var.data - self.running_var)
            self.steps.add_(1)
        else:
            mean, var = self.running_mean, self.running_var
        return (x - mean[None, :, None, None]) / (var[None, :, None, None] + self.eps).sqrt()


class Teacher:
    def __init__(self, student, decay):
        self.student, self.decay = student, decay
        self.teacher = copy.deepcopy(student)
        self.shadow = {name: p.clone().detach() for name, p in student.named_parameters()}
        self.running = {}
        for p in self.teacher.parameters():
            p.requires_grad_(False)

    def update_under_grad(self):
        for mine, theirs in zip(self.teacher.parameters(), self.student.parameters()):
            mine.data.mul_(self.decay).add_(theirs.data, alpha=1 - self.decay)
        for name, p in self.student.named_parameters():
            self.shadow[name] = self.decay * self.shadow[name] + (1.0 - self.decay) * p  # maybe: GPU107

    def update_buffers(self):
        for mine, theirs in zip(self.teacher.buffers(), self.student.buffers()):
            mine.copy_(theirs)
        for (name, old), (_, new) in zip(self.teacher.named_parameters(), self.student.named_parameters()):
            old = old * self.decay + new * (1 - self.decay)
            self.running[name] = old  # maybe: GPU107, GPU101, GPU106

    @torch.no_grad()
    def update(self):
        for mine, theirs in zip(self.teacher.parameters(), self.student.parameters()):
            mine.lerp_(theirs, 1 - self.decay)

    def update_pairs(self):
        theirs = self.student.state_dict()
        for key, value in self.teacher.state_dict().items():
            value.mul_(self.decay).add_(theirs[key] * (1 - self.decay))


def ema(source, target, decay):
    pairs = list(zip(target.parameters(), source.parameters()))
    for old, new in pairs:
        old.data = old.data * decay + new.data * (1 - decay)
    for old, new in pairs:
        old.mul_(decay).add_(new, alpha=1 - decay)


def train(model, teacher, loader, optimizer, classes=10):
    running_loss, baseline, center = None, 0.0, torch.zeros(1, 128).cuda()
    class_sums = torch.zeros(classes, 128, device="cuda")
    weights = torch.ones(3, device="cuda")
    moving = {}
    for step, (x, y) in enumerate(loader):
        x, y = x.cuda(), y.cuda()
        features = model(x, y)
        target = teacher.teacher(x, y)
        loss = F.cross_entropy(features, y) + F.mse_loss(features, target)
        losses = torch.stack([loss, features.mean(), target.mean()])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running_loss = loss.item() if running_loss is None else 0.99 * running_loss + 0.01 * loss.item()
        baseline = 0.9 * baseline + 0.1 * loss  # expect: GPU101|GPU107
        center = center * 0.9 + features.mean(0, keepdim=True).detach() * 0.1
        class_sums.index_add_(0, y, features.detach())
        class_sums[y] += features  # maybe: GPU107  # note: GPU101
        weights = weights + 0.1 * (losses - weights)  # maybe: GPU107, GPU101
        moving["loss"] = 0.9 * moving.get("loss", 0.0) + 0.1 * losses[0]  # maybe: GPU101, GPU107
        center -= 0.01 * center
        teacher.update()
        teacher.update_under_grad()
        teacher.update_buffers()
        teacher.update_pairs()
        ema(model, teacher.teacher, 0.999)
    return running_loss, baseline, center, class_sums, weights, moving


def main(loader):
    model = Prototypes(10, 128).cuda()
    norm = Statistics(3).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        F.cross_entropy(model(norm(x.cuda()).flatten(1), y.cuda()), y.cuda()).backward()
        optimizer.step()
    return train(model, Teacher(model, 0.99), loader, optimizer)
