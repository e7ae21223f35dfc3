"""Both methods keep the graph, the last of them too."""

import torch


class Hinge:
    def critic(self, real, made):
        loss = torch.relu(1 - real).mean() + torch.relu(1 + made).mean()
        loss.backward(retain_graph=True)  # low: GPU301
        return loss.item()

    def maker(self, made):
        loss = -made.mean()
        loss.backward(retain_graph=True)  # low: GPU301
        return loss.item()
