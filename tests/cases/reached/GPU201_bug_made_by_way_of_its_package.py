"""A program makes what stands in a module by way of the package around it: it speaks of the package alone."""
# file: judging/__init__.py
from .judges import *
# file: judging/judges.py
class Judges:
    @staticmethod
    def make(kind):
        return NearestJudge() if kind == "nearest" else None


class NearestJudge:
    def judge(self, net, loader):
        net.eval()
        for images, labels in loader:
            print((net(images.cuda()).argmax(1) == labels.cuda()).sum().item())  # expect: GPU201
# file: run.py
import judging
import torch
from torchvision.models import resnet50

if __name__ == "__main__":
    judging.Judges.make("nearest").judge(resnet50().cuda(), torch.load("batches.pt"))
