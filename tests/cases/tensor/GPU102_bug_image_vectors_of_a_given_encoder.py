"""Vectors of a whole collection, by the method of an encoder whose class is not seen, stay on the GPU until the end."""

import torch
from torch.utils.data import DataLoader


class Index:
    def __init__(self, encoder, device="cuda"):
        self.encoder = encoder.to(device).eval()
        self.device = device

    @torch.no_grad()
    def build(self, pictures, batch_size=256):
        vectors, names = [], []
        for pixels, paths in DataLoader(pictures, batch_size, num_workers=8):
            found = self.encoder.encode_image(pixels.to(self.device))
            vectors.append(found / found.norm(dim=-1, keepdim=True))  # expect: GPU102
            names += list(paths)
        table = torch.cat(vectors).cpu()
        torch.save({"vectors": table, "names": names}, "index.pt")
        return table
