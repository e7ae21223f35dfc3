import torch


class Encoder:
    seen = {}

    def __init__(self, net):
        self.net = net.cuda().eval()

    @torch.no_grad()
    def __call__(self, image, name):
        if name not in Encoder.seen:
            Encoder.seen[name] = self.net(image.cuda()[None])  # expect: GPU106|GPU102
        return Encoder.seen[name]
