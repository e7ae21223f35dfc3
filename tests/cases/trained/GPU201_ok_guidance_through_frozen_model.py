import torch


class ClassifierGuidance:
    """The classifier is frozen, its input is not: gradient must flow through it."""

    def __init__(self, classifier, scale):
        self.classifier = classifier.cuda().eval().requires_grad_(False)
        self.scale = scale

    def grad(self, x, t, y):
        with torch.enable_grad():
            x_in = x.detach().requires_grad_(True)
            logits = self.classifier(x_in, t)
            logp = logits.log_softmax(-1)[range(len(x)), y]
            return torch.autograd.grad(logp.sum(), x_in)[0] * self.scale


def sample(denoiser, guide: ClassifierGuidance, shape, steps, y):
    denoiser.eval()
    with torch.no_grad():
        x = torch.randn(shape, device="cuda")
        for t in reversed(range(steps)):
            tt = torch.full((shape[0],), t, device="cuda")
            eps = denoiser(x, tt)
            x = x - 0.01 * eps + 0.01 * guide.grad(x, tt, y)
    return x.cpu()
