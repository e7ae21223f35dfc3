"""A measurement whose step the caller may bring: with a backward in it, no_grad around it all would break it."""

import torch


def latency(model, sample, repeat=100, step=None):
    model.eval()
    times = []
    for _ in range(repeat):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        if step is not None:
            step(model, sample)
        else:
            _ = model(sample)  # low: GPU201
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return sum(times) / len(times)


def peak(model, sample, step=None):
    torch.cuda.reset_peak_memory_stats()
    model.eval()
    out = step(model, sample) if step is not None else model(sample)  # low: GPU201
    print(out.argmax(-1).tolist())
    return torch.cuda.max_memory_allocated()
