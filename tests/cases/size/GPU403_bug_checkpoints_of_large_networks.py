"""Checkpoints of networks with many weights, loaded onto the GPU beside them and kept while they train."""

import torch
import torchvision
from torch import nn

from transformers import AutoModel


class Big(nn.Module):
    def __init__(self, width=4096, layers=4):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(layers)])
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(d_model=1024, nhead=8), num_layers=12)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def resume(path, loader):
    model = Big().cuda()
    optimizer = torch.optim.Adam(model.parameters())
    checkpoint = torch.load(path)  # expect: GPU403
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()


def resume_backbone(path, loader):
    model = torchvision.models.vit_l_16().cuda()
    state = torch.load(path, map_location="cuda:0")  # expect: GPU403
    model.load_state_dict(state)
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()


def resume_language(path, loader):
    model = AutoModel.from_pretrained("bert-large-uncased").cuda()
    weights = torch.load(path)  # expect: GPU403
    model.load_state_dict({key.removeprefix("module."): value for key, value in weights.items()})
    for batch in loader:
        loss = model(**batch).last_hidden_state.mean()
        loss.backward()


def resume_renamed(path, loader):
    model = torchvision.models.wide_resnet101_2().cuda()
    loaded = torch.load(path)  # expect: GPU403
    weights = loaded["state_dict"] if "state_dict" in loaded else loaded
    renamed = {}
    for key, value in weights.items():
        renamed[key[7:]] = value
    model.load_state_dict(renamed)
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()


def resume_in_branches(path, loader, gpu):
    model = torchvision.models.vgg16().cuda()
    if gpu:
        checkpoint = torch.load(path)  # expect: GPU403
    else:
        checkpoint = torch.load(path, map_location=torch.device("cpu"))
    model.load_state_dict(checkpoint.get("model"))
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()
