import gc

import torch
from sklearn.model_selection import KFold
from torch import nn, optim
from torch.utils.data import DataLoader, Subset


def fit(model, loader, epochs):
    opt = optim.Adam(model.parameters())
    for _ in range(epochs):
        for x, y in loader:
            opt.zero_grad()
            nn.functional.mse_loss(model(x.cuda()), y.cuda()).backward()
            opt.step()


def cross_validate(make_model, dataset, k=5):
    for fold, (tr, _) in enumerate(KFold(k).split(dataset)):
        model = make_model().cuda()
        fit(model, DataLoader(Subset(dataset, tr), 32), 10)
        torch.save(model.state_dict(), f"fold{fold}.pt")
        del model
        gc.collect()
        torch.cuda.empty_cache()
