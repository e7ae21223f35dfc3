import torch
import torch.nn.functional as F


def compute(lm, ids, vocab_size):
    logits = lm(ids[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="mean")
    return loss, logits


def train(lm, loader, opt, vocab_size, sample_every, show):
    for i, ids in enumerate(loader):
        loss, logits = compute(lm, ids.cuda(), vocab_size)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if i % sample_every == 0:
            show(logits[0].argmax(-1).tolist(), loss.item())  # maybe: GPU401
