"""Networks of another framework in a file that has torch for other things."""

import logging

import MNN
import numpy as np
import torch

nn = MNN.nn
F = MNN.expr


class Server:
    def __init__(self, device="cuda"):
        self.device = device

    def test(self, path, data):
        variables = F.load_as_dict(path)
        module = MNN.nn.load_module(list(variables), [], False)
        module.train(False)
        correct = 0
        for sample, label in data:
            result = module.forward(sample)
            correct += np.sum(np.array(F.argmax(result, 1).read()) == label)
        logging.info(correct)
        return correct

    def mean(self, weights):
        return torch.stack(weights).mean(0).to(self.device)
