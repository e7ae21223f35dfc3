import torch
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM


def finetune(dataset, name="gpt2"):
    model = AutoModelForCausalLM.from_pretrained(name).cuda()
    opt = torch.optim.AdamW(model.parameters(), lr=5e-5)
    for batch in DataLoader(dataset, batch_size=4):
        ids = batch["input_ids"].cuda()
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        opt.step()
        opt.zero_grad()
