import torch
from torch import nn


class Potential(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, graph):
        vectors = graph.vectors.requires_grad_(True)
        energy = self.layers(vectors).sum()
        forces = torch.autograd.grad(energy, vectors, create_graph=True)[0]
        stresses = []
        first = 0
        for index in range(graph.size):
            last = first + graph.edges[index]
            stresses.append(vectors[first:last].T @ forces[first:last])
            first = last
        return {"energy": energy, "forces": forces, "stress": torch.stack(stresses)}
