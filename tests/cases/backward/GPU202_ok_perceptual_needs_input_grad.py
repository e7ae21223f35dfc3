import torch
from torch import nn
from torchvision.models import vgg16


class VGGLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.vgg = vgg16(weights="DEFAULT").features[:16].eval()
        self.vgg.requires_grad_(False)

    def forward(self, fake, real):
        return nn.functional.l1_loss(self.vgg(fake), self.vgg(real))


def train(G, loader, opt):
    vgg_loss = VGGLoss().cuda()
    for lr, hr in loader:
        loss = vgg_loss(G(lr.cuda()), hr.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
