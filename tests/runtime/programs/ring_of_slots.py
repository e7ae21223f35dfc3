# A list of sixty-four slots that are filled one after the other, and then anew: as large as it will be, it is no leak.
import torch
from setting import device, make_model

model = make_model()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
slots = [None] * 64
for step in range(1000):
    states = torch.randn(64, 32, device=device)
    slots[step % len(slots)] = states
    loss = model(states).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
