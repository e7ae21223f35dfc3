"""A teacher all of whose weights are frozen, in a loop that asks of each whether it is not yet."""

import torch
from torch import nn
from torchvision.models import resnet18, resnet50

student, teacher = resnet18().cuda(), resnet50().cuda()
optimizer = torch.optim.Adam(student.parameters())


def train(loader):
    for pictures, _ in loader:
        loss = nn.functional.mse_loss(student(pictures.cuda()), teacher(pictures.cuda()))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


for name, weight in teacher.named_parameters():
    if weight.requires_grad:
        weight.requires_grad = False

for epoch in range(10):
    train(torch.utils.data.DataLoader([]))
