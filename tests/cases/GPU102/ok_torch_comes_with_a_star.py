from fastai.vision.all import *


def predictions(learn, dl):
    raw = []
    learn.model.eval()
    for batch in dl:
        with torch.no_grad():
            raw.append(learn.model(*batch[:1]).cpu())
    return torch.cat(raw).numpy()
