"""The loss is an entry whose key is an attribute: backward without arguments proves it a scalar."""

import torch


class Fitter:
    def __init__(self, problem: torch.nn.Module, loader, target="train_loss", device="cuda"):
        self.problem = problem.to(device)
        self.loader = loader
        self.target = target
        self.device = device
        self.optimizer = torch.optim.Adam(problem.parameters())

    def fit(self, epochs):
        for _ in range(epochs):
            history = []
            for batch in self.loader:
                terms = self.problem({k: v.to(self.device) for k, v in batch.items()})
                self.optimizer.zero_grad()
                terms[self.target].backward()
                self.optimizer.step()
                history.append(terms[self.target].detach())
            print(torch.stack(history).mean().item())
