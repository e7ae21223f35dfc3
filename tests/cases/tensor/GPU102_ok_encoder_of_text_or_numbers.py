"""Things called encoder, decoder and classifier that are no networks, and encodings that go to the host."""

import clip
import torch


def words(decoder, loader, device="cuda"):
    found = []
    with torch.no_grad():
        for tokens in loader:
            found.append(decoder(tokens))
    return found


def labels(classifier, encoder, rows):
    kept = []
    with torch.no_grad():
        for row in rows:
            kept.append(classifier(row["text"]))
            kept.append(encoder(row["label"]))
    return kept, torch.tensor(len(kept), device="cuda")


def image_bank(loader, device="cuda"):
    model, _ = clip.load("ViT-B/32", device=device)
    bank = []
    with torch.no_grad():
        for images, _ in loader:
            bank.append(model.encode_image(images.to(device)).cpu())
    return torch.cat(bank)
