"""Parameters that go with the function's own name, or of whose callers nothing is known."""

import torch


def regress(model, features_of, data, sweep):
    features = features_of(model, data)
    del model
    torch.cuda.empty_cache()
    return sweep(features.cuda())


def main(build, features_of, data, sweep):
    return regress(build().cuda(), features_of, data, sweep)


def called_elsewhere(model, features_of, data):
    features = features_of(model, data)
    del model
    torch.cuda.empty_cache()
    return features


def moved(batch, net, score):
    batch = batch.cuda()
    result = score(net(batch))
    del batch
    torch.cuda.empty_cache()
    return result


def runs(batch, net, score):
    return moved(batch, net, score)
