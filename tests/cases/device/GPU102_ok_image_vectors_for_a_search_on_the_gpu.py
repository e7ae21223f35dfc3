"""The same vectors are wanted on the GPU: the table is searched there, question by question."""

import torch
from torch.utils.data import DataLoader


class Index:
    def __init__(self, encoder, device="cuda"):
        self.encoder = encoder.to(device).eval()
        self.device = device

    @torch.no_grad()
    def build(self, pictures, batch_size=256):
        vectors, self.names = [], []
        for pixels, paths in DataLoader(pictures, batch_size, num_workers=8):
            found = self.encoder.encode_image(pixels.to(self.device))
            vectors.append(found / found.norm(dim=-1, keepdim=True))
            self.names += list(paths)
        self.table = torch.cat(vectors)

    @torch.no_grad()
    def search(self, picture, k=10):
        wanted = self.encoder.encode_image(picture.to(self.device).unsqueeze(0))
        best = (self.table @ wanted.squeeze(0)).topk(k).indices.tolist()
        return [self.names[i] for i in best]
