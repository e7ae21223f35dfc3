"""A long recording goes through the network in pieces; together they are one recording's features."""

import torch


class Reader:
    def __init__(self, network: torch.nn.Module, longest=160_000):
        self.network = network.cuda().eval()
        self.longest = longest

    def features(self, samples):
        pieces = []
        with torch.no_grad():
            sound = torch.from_numpy(samples).float().cuda().view(1, -1)
            for start in range(0, sound.size(1), self.longest):
                pieces.append(self.network(sound[:, start : start + self.longest]))
        return torch.cat(pieces, 1).squeeze(0)
