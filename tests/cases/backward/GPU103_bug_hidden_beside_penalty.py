"""A gradient penalty takes a differentiable gradient in each step; the state it trains with is carried all the same."""
import torch
from torch import nn

rnn = nn.GRU(8, 16)
head = nn.Linear(16, 8)
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(rnn.parameters(), lr=0.1)


def train(chunks):
    hidden = torch.zeros(1, 4, 16)
    for inputs, targets in chunks:
        inputs.requires_grad_()
        output, hidden = rnn(inputs, hidden)  # expect: GPU103
        loss = criterion(head(output), targets)
        (grad,) = torch.autograd.grad(loss, inputs, create_graph=True)
        optimizer.zero_grad()
        (loss + grad.pow(2).mean()).backward(retain_graph=True)
        optimizer.step()
