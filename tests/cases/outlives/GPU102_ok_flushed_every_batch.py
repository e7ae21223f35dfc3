import numpy as np
import torch


@torch.no_grad()
def dump_features(encoder, loader, path, device="cuda"):
    encoder.eval().to(device)
    chunk, part = [], 0
    for i, x in enumerate(loader):
        chunk.append(encoder(x.to(device)))
        if len(chunk) == 8:
            np.save(f"{path}/{part:05d}.npy", torch.cat(chunk).cpu().numpy())
            chunk = []
            part += 1
    if chunk:
        np.save(f"{path}/{part:05d}.npy", torch.cat(chunk).cpu().numpy())
