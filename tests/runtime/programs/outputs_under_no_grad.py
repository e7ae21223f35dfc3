# holder: list `outputs` in `predict()`
# line: outputs.append(model(x))
# kind: eval
# bytes: 512
import torch
from setting import batch, make_model


def predict():
    model = make_model().eval()
    outputs = []
    with torch.no_grad():
        for _ in range(1000):
            x, _ = batch()
            outputs.append(model(x))
    return torch.cat(outputs)


predict()
