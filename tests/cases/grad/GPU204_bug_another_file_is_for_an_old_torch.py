"""No number is read here, but in the trainer, and as it was read before torch 0.4; no file of the program knows what came later."""
# file: predictor.py
from torch.autograd import Variable


class Predictor:
    def __init__(self, net):
        self.net = net.cuda()
        self.net.eval()

    def predict(self, loader):
        found = []
        for words in loader:
            words = Variable(words.cuda(), volatile=True)  # low: GPU204
            found.append(self.net(words).max(1)[1].cpu().numpy())  # low: GPU201
        return found
# file: train.py
from networks import build, loaders
from predictor import Predictor
from torch import nn, optim

net = build().cuda()
adam = optim.Adam(net.parameters())
for words, answers in loaders("train"):
    errors = nn.functional.nll_loss(net(words.cuda()), answers.cuda(), reduce=False)
    adam.zero_grad()
    errors.sum().backward()
    adam.step()
    print(errors.sum().data[0])
Predictor(net).predict(loaders("test"))
