"""An evaluation that nothing calls: what others have of its name is a text by which they look up data, and no function."""
# file: models/sage.py
import torch


class Recommender:
    def __init__(self, model, predictor):
        self.model, self.predictor = model.cuda(), predictor.cuda()
        self.optimizer = torch.optim.Adam([*model.parameters(), *predictor.parameters()])

    def fit(self, loader):
        for nodes, edges, labels in loader:
            found = self.predictor(self.model(nodes.cuda()), edges.cuda())
            loss = torch.nn.functional.binary_cross_entropy_with_logits(found, labels.cuda())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        # print(test(self.model, self.predictor, loader))


def test(model, predictor, loader):
    model.eval()
    predictor.eval()
    found = []
    for nodes, edges, _ in loader:
        states = model(nodes.cuda())  # low: GPU201
        found.append(predictor(states, edges.cuda()))  # low: GPU101
    return torch.cat(found)
# file: run.py
from models.sage import Recommender
from torch import nn
from torchvision.models import resnet50


def main(splits):
    sage = Recommender(resnet50(), nn.Bilinear(1000, 1000, 1))
    sage.fit(splits["train"])
    print(len(splits["test"]))


if __name__ == "__main__":
    import pickle
    import sys

    main(pickle.load(open(sys.argv[1], "rb")))
