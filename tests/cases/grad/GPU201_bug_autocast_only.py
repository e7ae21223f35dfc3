import torch
from torch import nn
from sklearn.metrics import f1_score


def valid_epoch(model, loader, device):
    model.eval()
    y_true, y_pred = [], []
    for x, y in loader:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            logits = model(x.to(device))  # expect: GPU201
        y_pred += logits.argmax(1).tolist()
        y_true += y.tolist()
    return f1_score(y_true, y_pred, average="macro")


def train_epoch(model, loader, opt, device):
    model.train()
    for x, y in loader:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
        opt.zero_grad()
        loss.backward()
        opt.step()
