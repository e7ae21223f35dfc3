"""Of two ways to evaluate the program uses one."""

# file: trainer.py
import torch


class Trainer:
    def __init__(self, model, opt):
        self.model = model.cuda()
        self.opt = opt

    def train(self, loader):
        self.model.train()
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(self.model(x.cuda()), y.cuda())
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()

    def validate(self, loader):
        self.model.eval()
        right = 0
        for x, y in loader:
            right += (self.model(x.cuda()).argmax(1).cpu() == y).sum().item()  # expect: GPU201
        return right

    def figures_for_the_paper(self, loader):
        self.model.eval()
        found = []
        for x, y in loader:
            found.append((self.model(x.cuda()).argmax(1).cpu() == y).sum().item())  # low: GPU201
        return found


# file: main.py
import torch
from data import loaders
from models import Net
from trainer import Trainer

train, held = loaders()
net = Net()
trainer = Trainer(net, torch.optim.Adam(net.parameters()))
for epoch in range(10):
    trainer.train(train)
    print(trainer.validate(held))
