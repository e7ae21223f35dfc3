# autocast keeps low-precision copies of the weights until its region ends.
import torch
from setting import device, learn, training

model, optimizer = training()
for _ in range(1000):
    with torch.autocast(device.type, dtype=torch.bfloat16):
        learn(model, optimizer)
