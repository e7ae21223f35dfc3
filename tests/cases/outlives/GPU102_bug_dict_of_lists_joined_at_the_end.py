"""Each batch's dict of outputs goes into lists by name; they are joined and brought to the host once, after the last."""

from collections import defaultdict

import numpy as np
import torch


def dump(model, loader, path, device="cuda"):
    model = model.to(device)
    model.eval()
    gathered = defaultdict(list)
    for views, index in loader:
        with torch.inference_mode():
            out = model.describe(views.to(device))
        for name, value in out.items():
            gathered[name].append(value)  # expect: GPU102
        gathered["index"].append(index)
    arrays = {name: torch.cat(parts).cpu().numpy() for name, parts in gathered.items()}
    np.savez_compressed(path, **arrays)
