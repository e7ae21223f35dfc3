"""The centres are found under no_grad, by the caller."""

import torch
from sklearn.cluster import KMeans
from torch import nn


class Clustering:
    def __init__(self, net: nn.Module, clusters=20, device="cuda:0"):
        self.device = torch.device(device)
        self.net = net.to(self.device)
        self.clusters = clusters

    def _start(self, loader):
        codes = []
        for graph in loader:
            graph = graph.to(self.device)
            code = self.net(graph.x, graph.edge_index, graph.batch)
            codes.append(code.cpu())
        found = KMeans(self.clusters, n_init=20).fit(torch.cat(codes).numpy())
        return torch.tensor(found.cluster_centers_, device=self.device)

    def fit(self, loader, epochs):
        with torch.no_grad():
            self.centres = nn.Parameter(self._start(loader))
        opt = torch.optim.Adam([*self.net.parameters(), self.centres], 1e-3)
        for _ in range(epochs):
            for graph in loader:
                graph = graph.to(self.device)
                code = self.net(graph.x, graph.edge_index, graph.batch)
                share = 1 / (1 + torch.cdist(code, self.centres) ** 2)
                share = share / share.sum(1, keepdim=True)
                wanted = (share**2 / share.sum(0)).detach()
                loss = (wanted * (wanted.log() - share.log())).sum(1).mean()
                opt.zero_grad()
                loss.backward()
                opt.step()
