import torch
from torch import nn


class Recommender:
    def __init__(self, user_tower: nn.Module, item_tower: nn.Module):
        self.user_tower, self.item_tower = user_tower.cuda(), item_tower.cuda()

    def fit(self, loader, opt):
        self.user_tower.train()
        for u, i, y in loader:
            s = (self.user_tower(u.cuda()) * self.item_tower(i.cuda())).sum(1)
            loss = nn.functional.binary_cross_entropy_with_logits(s, y.cuda())
            opt.zero_grad()
            loss.backward()
            opt.step()

    def recommend(self, users, items, k=20):
        self.user_tower.eval()
        self.item_tower.eval()
        table = self.item_tower(items.cuda())  # expect: GPU201
        top = []
        for u in users.split(256):
            top.append((self.user_tower(u.cuda()) @ table.t()).topk(k).indices.cpu())  # maybe: GPU201
        return torch.cat(top)
