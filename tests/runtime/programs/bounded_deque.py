# A deque with room for 100 entries: still filling while the steps are sampled, and bounded.
# status: bounded
from collections import deque

from setting import learn, training

model, optimizer = training()
recent = deque(maxlen=100)
for _ in range(1000):
    loss = learn(model, optimizer)
    recent.append(loss.detach())
