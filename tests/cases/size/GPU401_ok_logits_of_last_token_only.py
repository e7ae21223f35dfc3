import torch
import torch.nn.functional as F
from transformers import AutoModelForSequenceClassification


def train(loader, name):
    model = AutoModelForSequenceClassification.from_pretrained(name, num_labels=3).cuda()
    opt = torch.optim.AdamW(model.parameters(), 2e-5)
    for batch in loader:
        out = model(batch["ids"].cuda(), attention_mask=batch["mask"].cuda())
        loss = F.cross_entropy(out.logits, batch["y"].cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
