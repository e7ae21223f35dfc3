import torch
from torch import nn


def fit(model, loader, opt, ckpt):
    step = 0
    try:
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
    except torch.cuda.OutOfMemoryError as e:
        print(f"out of memory at step {step}; try a smaller --batch-size")
        raise SystemExit(1) from e
    except KeyboardInterrupt:
        print("interrupted")
    torch.save({"model": model.state_dict(), "step": step}, ckpt)
