# Outputs are kept as numpy-like host tensors: nothing on the GPU.
# host: yes
import torch
from setting import batch, make_model


def predict():
    model = make_model().eval()
    outputs = []
    with torch.no_grad():
        for _ in range(1000):
            x, _ = batch()
            outputs.append(model(x).argmax(-1).cpu())
    return torch.cat(outputs)


predict()
