"""The settings freeze one of two networks in a model: how much the other saves, nobody says."""

# file: settings.py
FREEZE_TEXT = True
# file: net.py
from torch import nn


class TwoSided(nn.Module):
    def __init__(self, text, image, freeze_text=False):
        super().__init__()
        self.text, self.image = text, image
        self.score = nn.Bilinear(512, 512, 1)
        if freeze_text:
            for p in self.text.parameters():
                p.requires_grad = False

    def forward(self, words, pixels):
        return self.score(self.text(words), self.image(pixels))
# file: train.py
import settings
import torch
import torch.nn.functional as F
from net import TwoSided


def validate(model, loader):
    model.eval()
    right = 0
    for words, pixels, y in loader:
        right += (model(words.cuda(), pixels.cuda()) > 0).eq(y.cuda()).sum().item()  # note: GPU201
    return right


def main(text, image, train_loader, loader):
    model = TwoSided(text, image, freeze_text=settings.FREEZE_TEXT).cuda()
    opt = torch.optim.Adam([p for p in model.parameters() if p.requires_grad])
    for words, pixels, y in train_loader:
        loss = F.binary_cross_entropy_with_logits(model(words.cuda(), pixels.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(validate(model, loader))
