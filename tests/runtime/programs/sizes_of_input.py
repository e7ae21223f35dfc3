# Longer sequences every third step, and a mask kept for each length: as many as there are lengths, which still grow.
# status: filling
import torch
from setting import device

masks = {}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x):
        length = x.size(1)
        if length not in masks:
            masks[length] = torch.ones(length, length, device=device).tril()
        return masks[length] @ self.linear(x)


net = Net().to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(300):
    length = 8 + step // 3
    loss = net(torch.zeros(4, length, 8, device=device)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
