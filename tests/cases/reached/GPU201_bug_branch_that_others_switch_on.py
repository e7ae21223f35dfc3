"""What a constructor switches off others switch on: the program by its name, a class below, one above, or by a word."""
# file: by_name.py
import torch
from torchvision.models import resnet50


class Runner:
    def __init__(self):
        self.resumes = False
        self.net = resnet50().cuda()

    def start(self, loader):
        if self.resumes:
            self.look(loader)

    def look(self, loader):
        self.net.eval()
        for images, labels in loader:
            print((self.net(images.cuda()).argmax(1) == labels.cuda()).sum().item())  # expect: GPU201


if __name__ == "__main__":
    runner = Runner()
    runner.resumes = True
    runner.start(torch.load("batches.pt"))
# file: below.py
import torch
from torchvision.models import resnet50


class Worker:
    def __init__(self):
        self.takes_up = False
        self.net = resnet50().cuda()

    def start(self, loader):
        if self.takes_up:
            self.look(loader)

    def look(self, loader):
        self.net.eval()
        for images, labels in loader:
            print((self.net(images.cuda()).argmax(1) == labels.cuda()).sum().item())  # expect: GPU201


class Eager(Worker):
    def __init__(self):
        super().__init__()
        self.takes_up = True


if __name__ == "__main__":
    runner = Eager()
    runner.start(torch.load("batches.pt"))
# file: above.py
class Base:
    def go_on(self):
        self.goes_on = True
# file: from_above.py
from above import Base
import torch
from torchvision.models import resnet50


class Keeper(Base):
    def __init__(self):
        self.goes_on = False
        self.net = resnet50().cuda()

    def start(self, loader):
        if self.goes_on:
            self.look(loader)

    def look(self, loader):
        self.net.eval()
        for images, labels in loader:
            print((self.net(images.cuda()).argmax(1) == labels.cuda()).sum().item())  # expect: GPU201


if __name__ == "__main__":
    runner = Keeper()
    runner.go_on()
    runner.start(torch.load("batches.pt"))
# file: by_word.py
import torch
from torchvision.models import resnet50


class Holder:
    def __init__(self):
        self.holds_on = False
        self.net = resnet50().cuda()

    def start(self, loader):
        if self.holds_on:
            self.look(loader)

    def look(self, loader):
        self.net.eval()
        for images, labels in loader:
            print((self.net(images.cuda()).argmax(1) == labels.cuda()).sum().item())  # note: GPU201


if __name__ == "__main__":
    runner = Holder()
    for word in ("holds_on", "number"):
        setattr(runner, word, True)
    runner.start(torch.load("batches.pt"))
