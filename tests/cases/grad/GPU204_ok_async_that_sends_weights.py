"""The decorator does nothing for a coroutine, and here it need not: weights are copied, no network runs."""

import torch
from torch import nn


class Exchange:
    def __init__(self, model: nn.Module, channel):
        self.model = model.cuda()
        self.channel = channel

    @torch.no_grad()
    async def send_weights(self):
        for name, weight in self.model.state_dict().items():
            await self.channel.send(name, weight.to(torch.bfloat16).cpu())
