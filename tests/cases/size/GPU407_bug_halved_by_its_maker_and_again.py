"""What makes a network has moved and cast it; who asks for it does both again, to be sure, and the GPU sees nothing wide then."""

import torch
from torchvision.models import vit_l_16


def make():
    model = vit_l_16(weights="DEFAULT")
    model = model.to(torch.device("cuda"))
    model = model.half()  # expect: GPU407
    return model.eval()


class Service:
    def __init__(self):
        self.device = torch.device("cuda")
        self.model = make()
        self.model.to(self.device)
        self.model = self.model.half()

    @torch.no_grad()
    def embed(self, images):
        return self.model(images.to(self.device).half()).float().cpu()


if __name__ == "__main__":
    print(Service().embed(torch.load("images.pt")))
