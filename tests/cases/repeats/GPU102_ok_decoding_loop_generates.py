import torch


@torch.no_grad()
def sample(model, start, n_new, temperature=1.0):
    """Autoregressive decoding: the sequence is the result and grows by one token a step."""
    model.eval()
    ids = start.cuda()
    for _ in range(n_new):
        logits = model(ids[:, -1024:])[:, -1] / temperature
        nxt = torch.multinomial(torch.softmax(logits, -1), 1)
        ids = torch.cat([ids, nxt], dim=1)
    return ids
