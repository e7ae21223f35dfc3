import numpy as np
import torch
from sentence_encoder import build_encoder


def encode_corpus(lines, path, bs=128):
    enc = build_encoder(path).cuda()
    enc.eval()
    out = np.zeros((len(lines), enc.dim), dtype="float32")
    for k in range(0, len(lines), bs):
        ids = enc.tokenize(lines[k : k + bs]).cuda()
        z = enc(ids)  # expect: GPU201
        out[k : k + bs] = z.detach().cpu().numpy()
    return out
