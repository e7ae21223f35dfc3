"""Each epoch's validation runs with grad on, which is dear; the test after the last one runs once."""

import torch
from data import load_graph
from models import Attention

features, edges, labels, val, test = (part.cuda() for part in load_graph())
model = Attention(features.shape[1], int(labels.max()) + 1).cuda()
opt = torch.optim.Adam(model.parameters(), 5e-3)


def train(epoch):
    model.train()
    loss = torch.nn.functional.nll_loss(model(features, edges), labels)
    opt.zero_grad()
    loss.backward()
    opt.step()


def validate():
    model.eval()
    output = model(features, edges)  # expect: GPU201
    return (output[val].argmax(1) == labels[val]).float().mean().item()


def compute_test():
    model.eval()
    output = model(features, edges)  # low: GPU201
    print((output[test].argmax(1) == labels[test]).float().mean().item())


for epoch in range(200):
    train(epoch)
    print(validate())
compute_test()
