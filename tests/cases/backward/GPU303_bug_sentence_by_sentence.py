import random

from torch import nn, optim


def train(parser: nn.Module, treebank, epochs, batch=32):
    parser.cuda()
    adam = optim.Adam(parser.parameters(), lr=2e-3, betas=(0.9, 0.9))
    for ep in range(epochs):
        random.shuffle(treebank)
        errs = []
        for k, (words, heads) in enumerate(treebank, 1):
            scores = parser(words.cuda())
            errs.append(nn.functional.cross_entropy(scores, heads.cuda()))  # note: GPU303
            if k % batch == 0:
                cost = sum(errs) / len(errs)  # maybe: GPU303
                adam.zero_grad()
                cost.backward()
                adam.step()
                errs = []
        print(ep)
