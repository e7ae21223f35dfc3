"""`del` of the scores behind the backward, which gains nothing: the peak is over."""

import torch.nn.functional as F


def behind_the_step(model, loader, optimizer, vocab_size):
    for tokens, following in loader:
        logits = model(tokens.cuda())
        loss = F.cross_entropy(logits.view(-1, vocab_size), following.cuda().view(-1))  # expect: GPU401
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        del logits


def with_the_batch(model, loader, optimizer, vocab_size):
    for tokens, following in loader:
        logits = model(tokens.cuda())
        loss = F.cross_entropy(logits.view(-1, vocab_size), following.cuda().view(-1))  # expect: GPU401
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        del tokens, logits, following
