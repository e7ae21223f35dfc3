"""The list of all batches has no name: it is made inside the call that joins it."""

import torch


@torch.no_grad()
def logits(model: torch.nn.Module, loader):
    return torch.cat([model(x.cuda()) for x in loader]).cpu()  # low: GPU102


def features(encoder: torch.nn.Module, loader):
    encoder.cuda().eval()
    with torch.inference_mode():
        found = torch.cat(list(encoder(images.cuda()) for images, _ in loader), dim=0)  # low: GPU102
    return found.cpu().numpy()


def in_chunks(model: torch.nn.Module, samples, size):
    with torch.no_grad():
        out = torch.vstack([model(part.cuda()) for part in samples.split(size)])  # low: GPU102
    return out.cpu()
