"""What a network gives is bound anew before anybody reads it; what it leaves elsewhere on its way cannot be ruled out."""
import torch
import torch.nn.functional as F
from torchvision.models import resnet50


def fit(loader, optimizer):
    model = resnet50().cuda()
    for images, labels in loader:
        scores = model(images.cuda())  # low: GPU202
        optimizer.zero_grad()
        scores = model(images.cuda())
        F.cross_entropy(scores, labels.cuda()).backward()
        optimizer.step()
