import torch
import torch.nn.functional as F


def lm_loss(model, ids, vocab_size):
    logits = model(ids[:, :-1])
    return F.cross_entropy(logits.reshape(-1, vocab_size), ids[:, 1:].reshape(-1))


def train(model, loader, opt, vocab_size=50257):
    """The logits are local to `lm_loss` and gone when it returns."""
    for ids in loader:
        loss = lm_loss(model, ids.cuda(), vocab_size)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(loss.item())
