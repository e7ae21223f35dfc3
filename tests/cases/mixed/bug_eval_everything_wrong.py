import gc

import torch
from torch import nn


def test(net, dl):
    net.eval()
    crit = nn.CrossEntropyLoss()
    test_loss, outs = 0.0, []
    for x, y in dl:
        out = net(x.cuda())  # expect: GPU201
        test_loss += crit(out, y.cuda())  # expect: GPU101
        outs.append(out)  # expect: GPU101
        gc.collect()  # note: GPU502
        torch.cuda.empty_cache()  # note: GPU501
    return test_loss / len(dl), torch.cat(outs)
