"""One item a round, and nothing piles up: on the host each time, short lists, windows of one picture, other weights."""

import glob

import numpy as np
import torch
from PIL import Image


def to_host(model: torch.nn.Module, paths, transform):
    kept = []
    for path in paths:
        image = transform(Image.open(path)).unsqueeze(0).cuda()
        with torch.no_grad():
            kept.append(model(image).cpu())
    return torch.cat(kept)


@torch.no_grad()
def windows(model: torch.nn.Module, paths, transform, size):
    for path in paths:
        image = transform(Image.open(path)).cuda()
        tiles = []
        for top in range(0, image.shape[1], size):
            tiles.append(model(image[:, top : top + size][None]))
        np.save(path + ".npy", torch.cat(tiles).cpu().numpy())


@torch.no_grad()
def pair(model: torch.nn.Module, first, second, transform):
    kept = []
    for path in (first, second):
        kept.append(model(transform(Image.open(path)).cuda()[None]))
    return torch.cat(kept).cpu()


@torch.no_grad()
def prototypes(model: torch.nn.Module, support, queries, transform):
    kept = []
    for path in support:
        kept.append(model(transform(Image.open(path)).cuda()[None]))
    return (queries.cuda() @ torch.cat(kept).T).argmax(1).cpu()


@torch.no_grad()
def ensemble(model: torch.nn.Module, folder, image):
    kept = []
    for name in glob.glob(folder + "/*.pth"):
        model.load_state_dict(torch.load(name, map_location="cpu"))
        kept.append(model(image.cuda()))  # low: GPU505
    return torch.stack(kept).cpu()


@torch.no_grad()
def classes(model: torch.nn.Module, tokenizer, names):
    kept = []
    for name in names:
        inputs = tokenizer([f"a photo of a {name}", f"a drawing of a {name}"], return_tensors="pt").to("cuda")
        kept.append(model(**inputs).last_hidden_state[:, 0])
    return torch.cat(kept).cpu()


@torch.no_grad()
def beams(model: torch.nn.Module, ids, length):
    scores = []
    for _ in range(length):
        logits = model(ids.cuda())[:, -1]
        scores.append(logits)
        ids = torch.cat([ids, logits.argmax(-1, keepdim=True).cpu()], 1)
    return torch.stack(scores).cpu()


def arrays(net, paths):
    kept = []
    for path in paths:
        kept.append(net.run(np.load(path)))
    return np.concatenate(kept)
