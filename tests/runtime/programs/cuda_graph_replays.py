# holder: list `losses` in `train()`
# line: losses.append(loss.clone())
# bytes: 512
# needs: cuda
import torch
from torch import nn


def train():
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 4)).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, capturable=True)
    x, y = torch.randn(16, 32, device="cuda"), torch.randint(0, 4, (16,), device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad()
    with torch.cuda.graph(graph):
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    losses = []
    for _ in range(1000):
        x.copy_(torch.randn(16, 32, device="cuda"))
        graph.replay()
        losses.append(loss.clone())


train()
