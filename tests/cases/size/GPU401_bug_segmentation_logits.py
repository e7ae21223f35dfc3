import torch
import torch.nn as nn
import torch.nn.functional as F


class UNetHead(nn.Module):
    def __init__(self, encoder, ch, n_classes):
        super().__init__()
        self.encoder = encoder
        self.out = nn.Conv2d(ch, n_classes, kernel_size=1)

    def forward(self, x):
        f = self.encoder(x)
        return F.interpolate(self.out(f), size=x.shape[-2:], mode="bilinear")


def train(encoder, loader, epochs, n_classes=150):
    net = UNetHead(encoder, 64, n_classes).cuda()
    opt = torch.optim.SGD(net.parameters(), 0.01, 0.9)
    for _ in range(epochs):
        for image, mask in loader:
            pred = net(image.cuda())
            loss = F.cross_entropy(pred, mask.cuda(), ignore_index=255)  # expect: GPU401
            opt.zero_grad()
            loss.backward()
            opt.step()
