"""Networks that are stepped from some epoch on alone, and whose gradients are cleared until then."""

import torch
import torch.nn.functional as F
from torch import nn, optim
from torchvision.models import resnet50


def warmed_up(loader, epochs, warmup):
    body, head = resnet50(weights="DEFAULT").cuda(), nn.Linear(1000, 10).cuda()
    of_body, of_head = optim.SGD(body.parameters(), lr=1e-4), optim.SGD(head.parameters(), lr=1e-2)
    for epoch in range(epochs):
        for x, y in loader:
            loss = F.cross_entropy(head(body(x.cuda())), y.cuda())  # expect: GPU202
            of_body.zero_grad()
            of_head.zero_grad()
            loss.backward()
            of_head.step()
            if epoch >= warmup:
                of_body.step()


def left_before(loader, epochs, warmup):
    body, head = resnet50(weights="DEFAULT").cuda(), nn.Linear(1000, 10).cuda()
    of_body, of_head = optim.SGD(body.parameters(), lr=1e-4), optim.SGD(head.parameters(), lr=1e-2)
    for epoch in range(epochs):
        for x, y in loader:
            of_body.zero_grad()
            of_head.zero_grad()
            loss = F.cross_entropy(head(body(x.cuda())), y.cuda())  # expect: GPU202
            loss.backward()
            of_head.step()
            if epoch < warmup:
                continue
            of_body.step()


def now_and_then(loader, epochs, every):
    """Gradients are summed until the step."""
    body, head = resnet50(weights="DEFAULT").cuda(), nn.Linear(1000, 10).cuda()
    of_body, of_head = optim.SGD(body.parameters(), lr=1e-4), optim.SGD(head.parameters(), lr=1e-2)
    for epoch in range(epochs):
        for number, (x, y) in enumerate(loader):
            of_head.zero_grad()
            loss = F.cross_entropy(head(body(x.cuda())), y.cuda())
            loss.backward()
            of_head.step()
            if number % every == every - 1:
                of_body.step()
                of_body.zero_grad()


def summed_until_then(loader, epochs, warmup):
    """What is made before is in the first step, as nobody clears it."""
    body, head = resnet50(weights="DEFAULT").cuda(), nn.Linear(1000, 10).cuda()
    of_body, of_head = optim.SGD(body.parameters(), lr=1e-4), optim.SGD(head.parameters(), lr=1e-2)
    for epoch in range(epochs):
        for x, y in loader:
            of_head.zero_grad()
            loss = F.cross_entropy(head(body(x.cuda())), y.cuda())
            loss.backward()
            of_head.step()
            if epoch >= warmup:
                of_body.step()
                of_body.zero_grad()


def together(loader, epochs, warmup):
    """The backward begins with the steps."""
    body = resnet50(weights="DEFAULT").cuda()
    of_body = optim.SGD(body.parameters(), lr=1e-4)
    for epoch in range(epochs):
        for x, y in loader:
            if epoch >= warmup:
                of_body.zero_grad()
                F.cross_entropy(body(x.cuda()), y.cuda()).backward()
                of_body.step()
