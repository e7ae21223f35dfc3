# A replay buffer with a limit whose entries keep the graphs of what they were computed from.
# holder: deque `memory` in `main()`
# line: memory.append((model(torch.randn(256, 32, device=device)).mean(), step))
# graph: yes
# limit: 15.31 GiB then
import torch
from setting import device, train_some, training


def main():
    from collections import deque

    model, optimizer = training()
    memory = deque(maxlen=100_000)
    for step in range(100):
        memory.append((model(torch.randn(256, 32, device=device)).mean(), step))
        train_some(model, optimizer, 1)


main()
