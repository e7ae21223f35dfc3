"""An object that measures curvature: its constructor makes the gradients once, with their graph, which every product goes
through."""

import torch


class Curvature:
    def __init__(self, model, criterion, inputs, targets):
        self.model = model.eval()
        loss = criterion(self.model(inputs.cuda()), targets.cuda())
        loss.backward(create_graph=True)  # low: GPU302
        self.params = [p for p in self.model.parameters() if p.requires_grad]
        self.grads = [p.grad + 0.0 for p in self.params]

    def product(self, vector):
        return torch.autograd.grad(self.grads, self.params, grad_outputs=vector, retain_graph=True)

    def largest(self, rounds=100):
        vector = [torch.randn_like(p) for p in self.params]
        for _ in range(rounds):
            found = self.product(vector)
            norm = torch.sqrt(sum((part**2).sum() for part in found))
            vector = [part / norm for part in found]
        return norm.item()
