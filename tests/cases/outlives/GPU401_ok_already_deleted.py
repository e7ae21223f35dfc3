import torch
import torch.nn.functional as F


def train(gpt, loader, opt, vocab_size):
    for x, y in loader:
        logits = gpt(x.cuda())
        loss = F.cross_entropy(logits.view(-1, vocab_size), y.cuda().view(-1))
        del logits
        opt.zero_grad()
        loss.backward()
        opt.step()


@torch.no_grad()
def evaluate(gpt, loader, vocab_size):
    gpt.eval()
    total = 0.0
    for x, y in loader:
        logits = gpt(x.cuda())
        total += F.cross_entropy(logits.view(-1, vocab_size), y.cuda().view(-1)).item()
        del logits
    return total / len(loader)
