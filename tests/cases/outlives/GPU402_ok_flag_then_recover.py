import torch
import torch.nn.functional as F


def train(model, opt, loader, device):
    skipped = 0
    for x, y in loader:
        oom = False
        try:
            loss = F.cross_entropy(model(x.to(device)), y.to(device))
            opt.zero_grad()
            loss.backward()
            opt.step()
        except torch.cuda.OutOfMemoryError:
            oom = True
        if oom:
            skipped += 1
            opt.zero_grad()
            torch.cuda.empty_cache()
            continue
        print(loss.item())
    return skipped
