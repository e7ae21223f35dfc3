import torch


@torch.no_grad()
def predict(model, x):
    """Splits the batch in two until it fits."""
    try:
        return model(x.cuda()).cpu()
    except torch.cuda.OutOfMemoryError:
        half = len(x) // 2
        a = predict(model, x[:half])  # expect: GPU402@r
        b = predict(model, x[half:])  # expect: GPU402@r
        return torch.cat([a, b])
