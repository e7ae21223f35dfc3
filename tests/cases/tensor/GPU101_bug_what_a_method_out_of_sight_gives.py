"""A network out of sight gives what has a graph; what another of its methods gives may be words."""

import torch
from somewhere import build_reader


def ready(path):
    reader = build_reader()
    reader.load_state_dict(torch.load(path, map_location="cpu"))
    return reader.cuda().eval()


def outputs(loader, path):
    reader = ready(path)
    kept = []
    for pages in loader:
        kept.append(reader(pages.cuda()))  # expect: GPU101|GPU201
    return len(kept)


def words(loader, path):
    reader = ready(path)
    kept = []
    for pages in loader:
        found = reader.read_aloud(pages.cuda())  # maybe: GPU201
        kept.append(found)  # low: GPU101
    return len(kept)


def lines(loader, path):
    reader = ready(path)
    kept = []
    for pages in loader:
        found = reader.read_aloud(pages.cuda())["lines"]  # maybe: GPU201
        kept.extend(found)  # low: GPU101
    return len(kept)
