import numpy as np
import onnxruntime as ort
import torch


def run(path, loader):
    session = ort.InferenceSession(path)
    name = session.get_inputs()[0].name
    outputs = []
    with torch.no_grad():
        for x in loader:
            out = session.run(None, {name: x.numpy()})[0]
            outputs.append(out)
    return np.concatenate(outputs)
