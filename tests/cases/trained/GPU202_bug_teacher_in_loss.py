"""Distillation: the teacher's scores go into the loss as they are."""

import torch
import torch.nn.functional as F
from torch import nn
from torchvision.models import resnet18, resnet50


def distill(loader, epochs, device):
    teacher = resnet50(weights="DEFAULT").to(device).eval()
    student = resnet18(num_classes=1000).to(device)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    for _ in range(epochs):
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            wanted = teacher(images)  # expect: GPU202
            given = student(images)
            loss = F.cross_entropy(given, labels) + F.mse_loss(given, wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
