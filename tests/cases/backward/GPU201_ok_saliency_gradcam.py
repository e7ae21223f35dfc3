import torch
from torchvision.models import resnet50


class GradCAM:
    def __init__(self, model, layer):
        self.model = model.cuda().eval()
        self.acts = self.grads = None
        layer.register_forward_hook(self._forward)
        layer.register_full_backward_hook(self._backward)

    def _forward(self, module, inputs, output):
        self.acts = output.detach()

    def _backward(self, module, grad_in, grad_out):
        self.grads = grad_out[0].detach()

    def __call__(self, x, cls=None):
        scores = self.model(x.cuda())  # expect: GPU202
        cls = scores.argmax(1) if cls is None else cls
        self.model.zero_grad()
        scores[torch.arange(len(x)), cls].sum().backward()
        w = self.grads.mean((2, 3), keepdim=True)
        return torch.relu((w * self.acts).sum(1)).cpu()


net = resnet50(weights="DEFAULT")
cam = GradCAM(net, net.layer4)


def saliency(x):
    net.eval()
    x = x.cuda().requires_grad_()
    net(x).max(1).values.sum().backward()
    return x.grad.abs().amax(1).cpu()
