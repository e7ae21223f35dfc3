"""All embeddings are ranked against those of the other side on the GPU; how many rounds that takes is counted by one of them."""

import torch
from torch import nn

left, right = nn.Linear(512, 256).cuda().eval(), nn.Linear(512, 256).cuda().eval()


@torch.no_grad()
def ranks(pictures, texts):
    seen, read, found = [], [], []
    for start in range(0, len(pictures), 64):
        seen.append(left(pictures[start : start + 64].cuda()))
        read.append(right(texts[start : start + 64].cuda()))
    seen, read = torch.cat(seen), torch.cat(read)
    some = seen.index_select(0, torch.arange(0, len(seen), 5, device="cuda"))
    for index in range(int(seen.size(0) / 5)):
        asked = read[5 * index : 5 * index + 5]
        found.append(torch.mm(asked, some.t()).cpu().numpy())
    return found
