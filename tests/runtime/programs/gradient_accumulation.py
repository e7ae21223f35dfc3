# Four backward passes for one optimizer step.
# forwards-per-step: 4
from setting import batch, training
from torch import nn

model, optimizer = training()
for i in range(4000):
    x, y = batch()
    loss = nn.functional.cross_entropy(model(x), y) / 4
    loss.backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
