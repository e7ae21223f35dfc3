import copy

import torch

from .zoo import Classifier, train


def main(args):
    net = Classifier(args.width)
    start = {name: value.detach().clone() for name, value in net.state_dict().items()}
    net.cuda()
    for seed in range(args.seeds):
        torch.manual_seed(seed)
        net.load_state_dict(start)
        train(net)


def lottery(args):
    net = Classifier(args.width)
    start = copy.deepcopy(net.state_dict())
    net = net.to("cuda")
    train(net)
    net.load_state_dict(start)
    train(net)
