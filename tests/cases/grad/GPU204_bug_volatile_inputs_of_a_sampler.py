"""`volatile=True` on the inputs of a sampler that carries its state over a thousand steps: grad is on, and the word must
not only be deleted."""

import argparse

import torch
from torch.autograd import Variable


def main(model, dictionary):
    parser = argparse.ArgumentParser()
    parser.add_argument("--words", type=int, default=1000)
    args = parser.parse_args()
    model.load_state_dict(torch.load("lm.pt", map_location="cpu"))
    model.cuda().eval()
    state = (
        Variable(torch.zeros(2, 1, 1024).cuda(), volatile=True),  # expect: GPU204|GPU201|GPU103@v
        Variable(torch.zeros(2, 1, 1024).cuda(), volatile=True),
    )
    word = Variable(torch.rand(1, 1).mul(len(dictionary)).long().cuda(), volatile=True)  # expect: GPU204|GPU201|GPU103@v
    with open("sample.txt", "w") as out:
        for _ in range(args.words):
            scores, state = model(word, state)  # expect: GPU204|GPU201|GPU103@v
            chosen = torch.multinomial(scores.squeeze().data.exp().cpu(), 1)[0]
            word.data.fill_(chosen)
            out.write(dictionary[chosen] + "\n")
