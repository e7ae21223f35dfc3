"""Scores that are read at more than one position, that there are few of, or that are made at one position alone."""

import torch
from torch.nn.functional import cross_entropy
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification


@torch.no_grad()
def perplexity(loader):
    model = AutoModelForCausalLM.from_pretrained("gpt2").cuda().eval()
    total = 0.0
    for ids in loader:
        logits = model(ids).logits
        total += cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten()).item()
        del logits
    return total


@torch.no_grad()
def two_positions(loader):
    model = AutoModelForCausalLM.from_pretrained("gpt2").cuda().eval()
    for ids in loader:
        out = model(ids)
        yield out.logits[:, -1].argmax(-1).tolist(), out.logits[:, 0].argmax(-1).tolist(), out.logits[:, 1:].max().item()
        del out


@torch.no_grad()
def positions_of_a_mask(loader):
    model = AutoModelForCausalLM.from_pretrained("gpt2").cuda().eval()
    for ids, mask in loader:
        yield model(ids).logits[mask].argmax(-1).tolist()


@torch.no_grad()
def the_loss_beside_it(loader):
    model = AutoModelForCausalLM.from_pretrained("gpt2").cuda().eval()
    for ids in loader:
        out = model(ids, labels=ids)
        yield out.loss.item(), out.logits[:, -1].argmax(-1).tolist()
        del out


@torch.no_grad()
def classes(loader):
    model = AutoModelForSequenceClassification.from_pretrained("bert-base-uncased").cuda().eval()
    for batch in loader:
        yield model(**batch).logits[:, 1].tolist()


@torch.no_grad()
def decode(ids, steps: int):
    model = AutoModelForCausalLM.from_pretrained("gpt2").cuda().eval()
    cache = None
    for _ in range(steps):
        out = model(ids[:, -1:], past_key_values=cache, use_cache=True)
        cache = out.past_key_values
        ids = torch.cat([ids, out.logits[:, -1].argmax(-1, keepdim=True)], 1)  # maybe: GPU401
    return ids


@torch.no_grad()
def last_alone(loader, yes: int):
    model = AutoModelForCausalLM.from_pretrained("gpt2").cuda().eval()
    for batch in loader:
        yield model(**batch, logits_to_keep=1).logits[:, -1, yes].tolist()
