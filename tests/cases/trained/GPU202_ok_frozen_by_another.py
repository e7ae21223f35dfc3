"""A teacher that a helper hands over: whether it was frozen there cannot be seen."""

import torch
import torch.nn.functional as F
from teachers import load_teacher
from torchvision.models import resnet18


def distill(loader, device):
    teacher = load_teacher("large").to(device)
    teacher.eval()
    student = resnet18().to(device)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    for images, _ in loader:
        images = images.to(device)
        loss = F.mse_loss(student(images), teacher(images))  # maybe: GPU202
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
