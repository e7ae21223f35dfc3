# A scheduler wraps the optimizer's step and keeps numbers.
import torch
from setting import learn, training

model, optimizer = training()
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=1000)
rates = []
for _ in range(1000):
    learn(model, optimizer)
    scheduler.step()
    rates.append(scheduler.get_last_lr()[0])
