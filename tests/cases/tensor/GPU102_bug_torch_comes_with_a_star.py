from fastai.vision.all import *


def predictions(learn, dl):
    raw = []
    learn.model.cuda().eval()
    for batch in dl:
        with torch.no_grad():
            raw.append(learn.model(batch[0].cuda()))  # low: GPU102
    return torch.cat(raw).cpu().numpy()
