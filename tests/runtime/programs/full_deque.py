# A deque that is full after five entries: what is in it is always young.
from collections import deque

from setting import learn, training

model, optimizer = training()
recent = deque(maxlen=5)
for _ in range(1000):
    loss = learn(model, optimizer)
    recent.append(loss.detach())
