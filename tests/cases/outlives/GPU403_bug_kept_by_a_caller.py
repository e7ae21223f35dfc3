"""What a helper loads, restores and hands out as well, its caller keeps: through a training, or no longer than it takes."""

# file: networks.py
import torch
from torchvision.models import vgg16


def build(classes, resume):
    network = vgg16(num_classes=classes)
    start, checkpoint = 0, None
    if resume:
        checkpoint = torch.load(resume)  # expect: GPU403
        network.load_state_dict(checkpoint["network"])
        start = checkpoint["epoch"]
    return network, start, checkpoint


def build_to_run(classes, path):
    network = vgg16(num_classes=classes)
    checkpoint = torch.load(path)  # low: GPU403
    network.load_state_dict(checkpoint["network"])
    return network, checkpoint


# file: training.py
class Trainer:
    def __init__(self, network, optimizer, loss):
        self.network, self.optimizer, self.loss = network, optimizer, loss

    def train_epoch(self, loader):
        for x, y in loader:
            loss = self.loss(self.network(x.cuda()), y.cuda())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def fit(self, loader, epochs):
        for _ in range(epochs):
            self.train_epoch(loader)


# file: main.py
import networks
import torch
from torch import nn
from training import Trainer


def main(loader, options):
    network, start, kept = networks.build(21, options.resume)
    network = network.to(torch.device("cuda"))
    optimizer = torch.optim.SGD(network.parameters(), 0.01, momentum=0.9)
    if options.resume:
        optimizer.load_state_dict(kept["optimizer"])
    trainer = Trainer(network, optimizer, nn.CrossEntropyLoss())
    trainer.fit(loader, 20 - start)


def show(options):
    network, checkpoint = networks.build_to_run(21, options.path)
    network.cuda()
    print(checkpoint["epoch"])
    return network
