"""A helper of another file loads the checkpoint as it was saved; `main` holds it all through the training."""
# file: main.py
import torch
from torchvision.models.detection import maskrcnn_resnet50_fpn

from files import read_checkpoint, write_checkpoint


def main(folder, loader, epochs=26):
    net = maskrcnn_resnet50_fpn(num_classes=91).to("cuda")
    opt = torch.optim.SGD(net.parameters(), 0.02, momentum=0.9)
    ckpt = read_checkpoint(folder)
    start = 0
    if ckpt is not None:
        net.load_state_dict(ckpt["net"])
        opt.load_state_dict(ckpt["opt"])
        start = ckpt["epoch"] + 1
    for epoch in range(start, epochs):
        for images, targets in loader:
            images = [image.to("cuda") for image in images]
            targets = [{k: v.to("cuda") for k, v in t.items()} for t in targets]
            loss = sum(net(images, targets).values())
            opt.zero_grad()
            loss.backward()
            opt.step()
        write_checkpoint(folder, net=net.state_dict(), opt=opt.state_dict(), epoch=epoch)
# file: files.py
from pathlib import Path

import torch


def read_checkpoint(folder):
    found = sorted(Path(folder).glob("epoch-*.pt"))
    return torch.load(found[-1]) if found else None  # expect: GPU403


def write_checkpoint(folder, **entries):
    torch.save(entries, Path(folder) / f"epoch-{entries['epoch']:03}.pt")
