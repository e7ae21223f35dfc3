"""Image encoders of known makers, and a part of a model that is given tensors for certain."""

import clip
import torch


def image_bank(loader, device="cuda"):
    model, preprocess = clip.load("ViT-B/32", device=device)
    bank = []
    with torch.no_grad():
        for images, _ in loader:
            bank.append(model.encode_image(images.to(device)))  # low: GPU102
    return torch.cat(bank)


def draw(decoder, count):
    pictures = []
    with torch.no_grad():
        for _ in range(count // 64):
            noise = torch.randn(64, 128, device="cuda")
            pictures.append(decoder(noise))  # low: GPU102
    return torch.cat(pictures)
