"""What the judge is given carries the graph of the generator, and that of an embedding that is trained with the judge: a cut there would
take its gradient."""

import torch
from torch import nn


def train(generator: nn.Module, embedding: nn.Module, judge: nn.Module, loader, score):
    by_judge = torch.optim.Adam([*judge.parameters(), *embedding.parameters()], 1e-4)
    by_generator = torch.optim.Adam(generator.parameters(), 1e-4)
    for real, label in loader:
        fake = generator(torch.randn(len(real), 64, device="cuda"))
        loss = score(judge(torch.cat([fake, embedding(label.cuda())], 1)), 0)
        by_judge.zero_grad()
        loss.backward()
        by_judge.step()

        fake = generator(torch.randn(len(real), 64, device="cuda"))
        by_generator.zero_grad()
        score(judge(torch.cat([fake, embedding(label.cuda())], 1)), 1).backward()
        by_generator.step()
