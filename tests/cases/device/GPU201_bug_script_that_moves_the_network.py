"""The same script, but the network it looks at goes to the GPU with its batches."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
loaders = [DataLoader(TensorDataset(torch.rand(30, 7), torch.rand(30, 3)), batch_size=7) for _ in range(3)]
score = nn.MSELoss()
mean = nn.Sequential(nn.Linear(7, 4096), nn.ReLU(), nn.Linear(4096, 4096))
mean.load_state_dict(torch.load("mean.pt", map_location="cpu"))
mean.to(device)
mean.eval()
for loader in loaders:
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        loss = score(mean(x), y)  # expect: GPU201
        print(loss.item())
