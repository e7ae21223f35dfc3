import torch as t
import torch.nn.functional as F


def train_iters(model, it, n_iter, opt):
    step = 0
    tot, n = 0, 0
    while True:
        try:
            x, y = next(it)
        except StopIteration:
            break
        out = model(x.cuda())
        l = F.cross_entropy(out, y.cuda())
        opt.zero_grad()
        l.backward()
        t.nn.utils.clip_grad_value_(model.parameters(), 0.5)
        opt.step()
        tot = l + tot  # expect: GPU101
        n += y.numel()
        step += 1
        if step >= n_iter:
            break
    return tot / n
