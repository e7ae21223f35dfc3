import torch
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM


def finetune(dataset, name="gpt2-medium", epochs=1):
    model = AutoModelForCausalLM.from_pretrained(name).cuda()
    loader = DataLoader(dataset, batch_size=8, shuffle=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
    model.train()
    for _ in range(epochs):
        for batch in loader:
            ids = batch["input_ids"].cuda()
            outputs = model(input_ids=ids, labels=ids)
            loss = outputs.loss  # expect: GPU401
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
