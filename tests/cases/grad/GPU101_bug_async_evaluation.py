import asyncio

import torch
from torch import nn


class Service:
    def __init__(self, net: nn.Module, queue: asyncio.Queue):
        self.net = net.cuda().eval()
        self.queue = queue
        self.recent = []

    async def worker(self):
        while True:
            x, reply = await self.queue.get()
            y = self.net(x.cuda())  # note: GPU201
            self.recent.append(y)  # expect: GPU101
            reply.set_result(y.argmax(1).tolist())
