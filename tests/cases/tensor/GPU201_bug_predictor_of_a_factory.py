"""A scoring script: whatever the factory makes has weights, goes to the GPU and is asked by its own method."""

import csv
import sys

import torch

from sentiment.factory import make_predictor
from sentiment.reading import batches_of


def score(path, weights):
    predictor = make_predictor("bilstm-attention", vocabulary=40_000)
    predictor.load_state_dict(torch.load(weights, map_location="cpu"))
    predictor = predictor.cuda()
    predictor.eval()
    writer = csv.writer(sys.stdout)
    for ids, tokens, lengths in batches_of(path, 128):
        probs = predictor.predict_batch(tokens.cuda(), lengths).softmax(-1)  # low: GPU201
        for name, row in zip(ids, probs.cpu().tolist()):
            writer.writerow([name, *row])


if __name__ == "__main__":
    score(*sys.argv[1:3])
