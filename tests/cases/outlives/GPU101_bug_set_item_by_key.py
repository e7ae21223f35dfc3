import torch
import torch.nn.functional as F


def per_sample_scores(model, dataset, device):
    """Difficulty of each training sample, for curriculum learning."""
    model.to(device)
    model.eval()
    table = {}
    for idx in range(len(dataset)):
        x, y = dataset[idx]
        out = model(x.unsqueeze(0).to(device))  # expect: GPU201
        table[idx] = F.cross_entropy(out, torch.tensor([y], device=device))  # expect: GPU101
    order = sorted(table, key=lambda k: table[k].item())
    return order
