import torch
import torch.nn.functional as F
from torchvision.models import resnet50


def distill(student, loader, opt):
    """A teacher whose parameters need no gradient builds no graph on images that need none."""
    teacher = resnet50(weights="DEFAULT").cuda().eval()
    for p in teacher.parameters():
        p.requires_grad = False
    for x, y in loader:
        x = x.cuda()
        loss = F.mse_loss(student(x), teacher(x))
        opt.zero_grad()
        loss.backward()
        opt.step()
