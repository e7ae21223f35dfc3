"""The graph is a local variable's, and goes when the function returns."""

import torch


class Saliency:
    def of(self, net, picture, label):
        score = net(torch.as_tensor(picture, device="cuda").requires_grad_(True))[0, label]
        score.backward(retain_graph=True)
        return float(score)
