"""The logits are read after the backward as well."""

import torch
import torch.nn.functional as F
from transformers import AutoModelForMaskedLM


def pretrain(name, loader, steps):
    model = AutoModelForMaskedLM.from_pretrained(name).cuda().train()
    vocabulary = model.config.vocab_size
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step, (ids, labels) in zip(range(steps), loader):
        labels = labels.cuda()
        logits = model(input_ids=ids.cuda()).logits
        loss = F.cross_entropy(logits.view(-1, vocabulary), labels.view(-1), ignore_index=-100)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            right = logits.argmax(-1)[labels != -100] == labels[labels != -100]
            print(step, loss.item(), right.float().mean().item())
