import torch
from torchvision.models import resnet50


class Tracker:
    def __init__(self):
        self.net = resnet50().cuda().eval()
        self.frames = torch.zeros(256, 3, 224, 224, device="cuda")


def scenes(names, read):
    for name in names:
        torch.cuda.empty_cache()  # expect: GPU405
        tracker = Tracker()
        with torch.no_grad():
            for image in read(name):
                print(name, tracker.net(image.cuda()).argmax().item())
