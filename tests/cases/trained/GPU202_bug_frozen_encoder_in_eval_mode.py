import torch
from torch import nn, optim
from transformers import CLIPVisionModel


class Captioner(nn.Module):
    def __init__(self, name, decoder):
        super().__init__()
        self.vision = CLIPVisionModel.from_pretrained(name).eval()
        self.decoder = decoder

    def forward(self, pixels, ids):
        feats = self.vision(pixels).last_hidden_state.detach()  # low: GPU202
        return self.decoder(ids, feats)


def train(model: Captioner, loader):
    model.cuda()
    opt = optim.AdamW(model.decoder.parameters(), lr=1e-4)
    for pixels, ids in loader:
        loss = model(pixels.cuda(), ids.cuda()).loss
        opt.zero_grad()
        loss.backward()
        opt.step()
