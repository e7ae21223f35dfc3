"""The same in a constructor's loop, and in a method: once for each batch."""

import torch
import torch.nn.functional as F


class Curvature:
    def __init__(self, model, loader):
        self.model = model
        self.traces = []
        for x, y in loader:
            loss = F.cross_entropy(model(x.cuda()), y.cuda())
            loss.backward(create_graph=True)  # expect: GPU302
            vector = [torch.randn_like(p) for p in model.parameters()]
            grads = [p.grad for p in model.parameters()]
            products = torch.autograd.grad(grads, list(model.parameters()), grad_outputs=vector)
            self.traces.append(sum((v * h).sum().item() for v, h in zip(vector, products)))

    def again(self, x, y):
        loss = F.cross_entropy(self.model(x.cuda()), y.cuda())
        loss.backward(create_graph=True)  # expect: GPU302
        return [p.grad.norm().item() for p in self.model.parameters()]
