# The best in a heap that is held to a size, and besides all of them in a list: what holds the heap to its size says nothing of that.
# holder: list `self.entries` of `Best`
# line: heapq.heappush(self.entries, entry)
# bytes: 4096
import heapq
import itertools

import torch
from setting import device, learn, training


class Best:
    def __init__(self, room):
        self.room, self.entries, self.order = room, [], itertools.count()

    def offer(self, value, tensor):
        entry = (value, next(self.order), tensor)
        if len(self.entries) < self.room:
            heapq.heappush(self.entries, entry)


class Log:
    def __init__(self):
        self.pages = {"all": {"of them": []}}


def train():
    model, optimizer = training()
    best, log = Best(room=100_000), Log()
    for _ in range(1000):
        loss = learn(model, optimizer)
        tensor = torch.ones(1024, device=device)
        best.offer(loss.item(), tensor)
        log.pages["all"]["of them"].append(tensor)


train()
