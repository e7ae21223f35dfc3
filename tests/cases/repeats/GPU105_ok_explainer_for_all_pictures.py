"""One explainer, made before the loop, for all the pictures; its hooks live as long as the program wants them."""

import sys

import torch
from PIL import Image
from torchvision import models, transforms


class Explainer:
    def __init__(self, model, layer):
        self.model = model
        self.maps = self.grads = None
        layer.register_forward_hook(self._keep_maps)
        layer.register_full_backward_hook(self._keep_grads)

    def _keep_maps(self, module, inputs, output):
        self.maps = output.detach()

    def _keep_grads(self, module, grad_input, grad_output):
        self.grads = grad_output[0]

    def explain(self, picture):
        scores = self.model(picture)  # expect: GPU202
        self.model.zero_grad()
        scores[0, scores.argmax()].backward()
        weights = self.grads.mean((2, 3), keepdim=True)
        return (weights * self.maps).sum(1).relu()[0]


def main(paths):
    model = models.resnet50(weights="DEFAULT").cuda().eval()
    ready = transforms.Compose([transforms.Resize((224, 224)), transforms.ToTensor()])
    explainer = Explainer(model, model.layer4)
    for path in paths:
        picture = ready(Image.open(path)).unsqueeze(0).cuda()
        torch.save(explainer.explain(picture).cpu(), path + ".heat.pt")


main(sys.argv[1:])
