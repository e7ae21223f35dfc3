import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader


def main(dataset, model, epochs):
    accelerator = Accelerator(mixed_precision="bf16")
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
    loader = DataLoader(dataset, batch_size=8, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for epoch in range(epochs):
        model.train()
        total_loss = 0
        for step, batch in enumerate(loader):
            outputs = model(**batch)
            loss = outputs.loss
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            total_loss += loss  # expect: GPU101
        accelerator.print(f"epoch {epoch}: {total_loss / len(loader)}")
