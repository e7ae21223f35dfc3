"""What is repeated on the host travels as often: moved first, and repeated there, one does. So does a matrix that is drawn on the host and copied
into a buffer on the GPU in each step."""

import torch
from torch import nn


class Noisy(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.inputs, self.outputs = inputs, outputs
        self.weight = nn.Parameter(torch.zeros(outputs, inputs))
        self.register_buffer("noise", torch.zeros(outputs, inputs))

    def draw(self, size):
        drawn = torch.randn(size)
        return drawn.sign() * drawn.abs().sqrt()

    def anew(self):
        rows = self.draw(self.outputs)
        self.noise.copy_(rows.ger(self.draw(self.inputs)))  # low: GPU505

    def forward(self, x):
        return nn.functional.linear(x, self.weight + self.noise)


encoder = nn.TransformerEncoderLayer(512, 8).cuda()
noisy = Noisy(3136, 512).cuda()
optimizer = torch.optim.SGD(noisy.parameters(), lr=0.1)


@torch.no_grad()
def rerank(images, queries, k):
    rows = torch.cat([encoder(one.cuda()).cpu() for one in images])
    for at, query in enumerate(queries):
        several = rows[at].repeat(k, 1, 1).to("cuda")  # low: GPU505
        wide = rows[at].unsqueeze(0).expand(k, -1, -1).contiguous().cuda(non_blocking=True)  # low: GPU505
        print(encoder(several), encoder(wide), query)


def train(loader):
    state = torch.zeros(1024, 1024, device="cuda")
    for x, y in loader:
        loss = nn.functional.mse_loss(noisy(x.cuda()), y.cuda()) + state.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        noisy.anew()
        state.copy_(torch.zeros(1024, 1024))  # expect: GPU505
