# torch.compile: code is generated in the first steps.
# needs: compiler
import torch
from setting import learn, training

model, optimizer = training()
model = torch.compile(model)
for _ in range(1000):
    learn(model, optimizer)
