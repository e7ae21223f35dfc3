from gc import collect

import torch
from transformers import AutoModel


@torch.inference_mode()
def embed(texts, tok, name, bs=16):
    enc = AutoModel.from_pretrained(name).cuda().eval()
    vecs = []
    for k in range(0, len(texts), bs):
        t = tok(texts[k : k + bs], padding=True, return_tensors="pt").to("cuda")
        vecs.append(enc(**t).last_hidden_state[:, 0].cpu())
        del t
        collect()  # note: GPU502
    return torch.cat(vecs)
