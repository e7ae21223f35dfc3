import torch


class PCGrad:
    def __init__(self, optimizer):
        self.optim = optimizer

    def _flat(self):
        return torch.cat([p.grad.flatten() for g in self.optim.param_groups for p in g["params"]])

    def pc_backward(self, objectives):
        grads = []
        for obj in objectives:
            self.optim.zero_grad(set_to_none=True)
            obj.backward(retain_graph=True)
            grads.append(self._flat())
        for g in grads:
            for h in grads:
                dot = torch.dot(g, h)
                g -= torch.where(dot < 0, dot / h.norm() ** 2, torch.zeros_like(dot)) * h
        return torch.stack(grads).mean(0)


def hvp(loss, params, v):
    grads = torch.autograd.grad(loss, params, create_graph=True)
    dot = sum((g * u).sum() for g, u in zip(grads, v))
    return torch.autograd.grad(dot, params, retain_graph=True)
