"""A table of results goes into the network in each round, which writes its entries anew and reads none of the old ones; or
the loop cuts each entry before the next round."""

import torch
from torch import nn


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.classes = nn.Linear(8, 3)

    def forward(self, x, endpoints):
        x = self.body(x)
        endpoints["emb"] = x
        endpoints["soft"] = self.classes(endpoints["emb"])
        return endpoints


def embed(loader):
    net = Heads().cuda()
    net.eval()
    endpoints = {"emb": None, "soft": None}
    for data, _ in loader:
        endpoints = net(data.cuda(), endpoints)  # note: GPU201
        yield endpoints["emb"].cpu()


def embed_by_name(loader):
    net = Heads().cuda()
    net.eval()
    results = {}
    for data, _ in loader:
        results = net(x=data.cuda(), endpoints=results)  # note: GPU201
        yield results["emb"].cpu()


def embed_unseen(loader, model, endpoints):
    model.eval()
    for data, _ in loader:
        endpoints = model(data.cuda(), endpoints)  # maybe: GPU201
        for key, value in endpoints.items():
            endpoints[key] = endpoints[key].data.cpu().numpy()
        yield endpoints
