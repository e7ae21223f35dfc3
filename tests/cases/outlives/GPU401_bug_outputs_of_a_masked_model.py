"""Logits over a vocabulary, in the outputs of the model, stay bound through the backward; nobody reads them any more."""

import torch
import torch.nn.functional as F
from transformers import AutoModelForMaskedLM, get_linear_schedule_with_warmup


def pretrain(name, loader, steps):
    model = AutoModelForMaskedLM.from_pretrained(name).cuda().train()
    vocabulary = model.config.vocab_size
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    schedule = get_linear_schedule_with_warmup(optimizer, 1000, steps)
    for step, (ids, labels) in zip(range(steps), loader):
        logits = model(input_ids=ids.cuda()).logits  # expect: GPU401@l
        flat = logits.view(-1, vocabulary)  # expect: GPU401@l
        loss = F.cross_entropy(flat, labels.cuda().view(-1), ignore_index=-100)  # expect: GPU401@l
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 100 == 0:
            print(step, loss.item())
