"""Each batch's dict of outputs is brought to the host before it goes into the lists."""

from collections import defaultdict

import numpy as np
import torch


def dump(model, loader, path, device="cuda"):
    model = model.to(device)
    model.eval()
    gathered = defaultdict(list)
    for views, index in loader:
        with torch.inference_mode():
            out = {name: value.cpu() for name, value in model.describe(views.to(device)).items()}
        for name, value in out.items():
            gathered[name].append(value)
        gathered["index"].append(index)
    arrays = {name: torch.cat(parts).numpy() for name, parts in gathered.items()}
    np.savez_compressed(path, **arrays)
