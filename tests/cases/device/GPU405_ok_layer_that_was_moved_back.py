"""Layer by layer on the GPU: each was moved back in place before the cache is emptied, and the name holds nothing there."""

import torch


def quantize(model, quantizer, batches, dev):
    layers = model.layers
    for i in range(len(layers)):
        layer = layers[i].to("cuda")
        for parameter in layer.parameters():
            parameter.data = quantizer(parameter.data)
        layers[i] = layer.cpu()
        torch.cuda.empty_cache()
        del layer
