"""Before the training the centres of the clusters are found from what the network makes of all graphs, with grad on."""

import torch
from sklearn.cluster import KMeans
from torch import nn


class Clustering:
    def __init__(self, net: nn.Module, clusters=20, device="cuda:0"):
        self.device = torch.device(device)
        self.net = net.to(self.device)
        self.clusters = clusters

    def start(self, loader):
        codes = []
        for graph in loader:
            graph = graph.to(self.device)
            code = self.net(graph.x, graph.edge_index, graph.batch)  # expect: GPU201
            codes.append(code.detach().cpu())
        found = KMeans(self.clusters, n_init=20).fit(torch.cat(codes).numpy())
        self.centres = nn.Parameter(torch.tensor(found.cluster_centers_, device=self.device))

    def fit(self, loader, epochs):
        self.start(loader)
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
