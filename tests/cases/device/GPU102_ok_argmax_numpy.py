import torch
import numpy as np


def infer(model, dl, dev):
    model.to(dev).eval()
    preds, probs = [], []
    with torch.no_grad():
        for xb, _ in dl:
            out = model(xb.to(dev))
            preds += out.argmax(dim=1).tolist()
            probs.append(torch.softmax(out, 1).cpu().numpy())
    return np.array(preds), np.concatenate(probs)
