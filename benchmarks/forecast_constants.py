"""Measures, on a GPU, what operators allocate besides their results: the constants behind `gpulint forecast`.

    python benchmarks/forecast_constants.py OUT.json

Convolutions and recurrent networks get their workspaces from cuDNN, which chooses them by shape, type and layout; other operators
have temporaries of their own. Each entry has the bytes that were allocated in order, and which of them were still there afterwards.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn


def allocations(action: Callable[[], Any]) -> tuple[list[list[int]], Any]:
    """[bytes, 1 if still allocated] for each allocation during `action`, in order."""
    torch.cuda.synchronize()
    torch.cuda.memory._record_memory_history(stacks="python", max_entries=20_000)
    result = action()
    torch.cuda.synchronize()
    trace = torch.cuda.memory._snapshot()["device_traces"][0]
    torch.cuda.memory._record_memory_history(enabled=None)
    live: dict[int, int] = {}
    found: list[list[int]] = []
    for entry in trace:
        if entry["action"] == "alloc":
            live[entry["addr"]] = len(found)
            found.append([entry["size"], 1])
        elif entry["action"] == "free_completed" and entry["addr"] in live:
            found[live.pop(entry["addr"])][1] = 0
    return found, result


def both(module: Callable[..., Any], *inputs: torch.Tensor, times: int = 2) -> dict[str, Any]:
    """What the second forward and backward allocate; the first also starts handles."""
    out: dict[str, Any] = {}
    for _ in range(times):
        for one in inputs:
            one.grad = None
        if isinstance(module, nn.Module):
            module.zero_grad()
        forward, result = allocations(lambda: module(*inputs))
        first = result[0] if isinstance(result, tuple) else result
        seed = torch.ones_like(first)
        backward, _ = allocations(partial(first.backward, seed))
        out.setdefault("first", {"forward": forward, "backward": backward})
        out.update(forward=forward, backward=backward)
        del result, first
    return out


def convolutions() -> list[dict[str, Any]]:
    found = []
    shapes = [
        # batch, in, out, size, kernel, stride, groups
        (32, 3, 64, 224, 7, 2, 1), (32, 3, 96, 32, 3, 1, 1), (16, 3, 128, 64, 3, 1, 1), (32, 3, 768, 224, 16, 16, 1),
        (32, 64, 64, 56, 1, 1, 1), (32, 64, 256, 56, 1, 1, 1), (32, 64, 64, 56, 3, 1, 1), (32, 128, 128, 56, 3, 2, 1),
        (16, 128, 128, 64, 3, 1, 1), (16, 256, 256, 32, 3, 1, 1), (16, 384, 256, 32, 3, 1, 1), (16, 256, 128, 64, 1, 1, 1),
        (16, 128, 3, 64, 3, 1, 1), (4, 512, 512, 16, 3, 1, 1), (128, 384, 384, 8, 3, 1, 1), (32, 512, 512, 7, 3, 1, 1),
        (32, 96, 96, 56, 3, 1, 96), (32, 64, 128, 28, 3, 1, 32), (64, 1, 32, 28, 3, 1, 1), (64, 32, 64, 26, 3, 1, 1),
        (8, 256, 768, 32, 1, 1, 1), (2, 64, 64, 256, 3, 1, 1), (1, 100, 70, 128, 3, 1, 1), (256, 16, 16, 32, 3, 1, 1),
    ]  # fmt: skip
    for shape, (kind, layout) in itertools.product(
        shapes, (("float32", "nchw"), ("float16", "nchw"), ("bfloat16", "nhwc"), ("float32", "nhwc"))
    ):
        batch, inputs, outputs, size, kernel, stride, groups = shape
        dtype = getattr(torch, kind)
        memory = torch.channels_last if layout == "nhwc" else torch.contiguous_format
        module = nn.Conv2d(
            inputs, outputs, kernel, stride, kernel // 2 if stride == 1 else 0, groups=groups, bias=False
        )
        module = module.cuda().to(dtype=dtype, memory_format=memory)
        x = (
            torch.randn(batch, inputs, size, size, device="cuda", dtype=dtype)
            .contiguous(memory_format=memory)
            .requires_grad_()
        )
        found.append({"shape": shape, "dtype": kind, "layout": layout, **attempt(partial(both, module, x))})
    return found


def recurrent() -> list[dict[str, Any]]:
    found = []
    for name, hidden, layers, batch, length, both_ways, kind in itertools.product(
        ("LSTM", "GRU", "RNN"),
        (128, 512, 650),
        (1, 2),
        (16, 64),
        (16, 64),
        (False, True),
        ("float32", "float16"),
    ):
        if (name != "LSTM" and (layers == 1 or hidden == 512)) or (both_ways and length == 16):
            continue
        dtype = getattr(torch, kind)
        module = getattr(nn, name)(
            hidden, hidden, layers, dropout=0.2 * (layers > 1), bidirectional=both_ways
        )
        module = module.cuda().to(dtype)
        x = torch.randn(length, batch, hidden, device="cuda", dtype=dtype, requires_grad=True)
        weights = sum(weight.numel() * weight.element_size() for weight in module.parameters())
        found.append(
            {
                "network": name, "hidden": hidden, "layers": layers, "batch": batch, "length": length,
                "both_ways": both_ways, "dtype": kind, "weights": weights, **attempt(partial(both, module, x)),
            }
        )  # fmt: skip
    return found


def operators() -> list[dict[str, Any]]:
    def cuda(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.randn(*shape, device="cuda").to(dtype).requires_grad_()

    half = torch.bfloat16
    tokens = torch.randint(0, 30000, (16, 256), device="cuda")
    labels = torch.randint(0, 1000, (4096,), device="cuda")
    cases: dict[str, Callable[[], Any]] = {}
    for kind in (torch.float32, half):
        said = str(kind)[6:]
        cases |= {
            f"layer_norm {said}": lambda k=kind: both(nn.LayerNorm(768).cuda().to(k), cuda(4096, 768, dtype=k)),
            f"group_norm {said}": lambda k=kind: both(nn.GroupNorm(32, 256).cuda().to(k), cuda(16, 256, 32, 32, dtype=k)),
            f"batch_norm {said}": lambda k=kind: both(nn.BatchNorm2d(256).cuda().to(k), cuda(16, 256, 32, 32, dtype=k)),
            f"batch_norm nhwc {said}": lambda k=kind: both(
                nn.BatchNorm2d(256).cuda().to(k), cuda(16, 256, 32, 32, dtype=k).detach().contiguous(memory_format=torch.channels_last).requires_grad_()
            ),
            f"embedding {said}": lambda k=kind: embedding(k, tokens),
            f"cross_entropy {said}": lambda k=kind: both(lambda x: F.cross_entropy(x, labels), cuda(4096, 1000, dtype=k)),
            f"softmax {said}": lambda k=kind: both(lambda x: x.softmax(-1), cuda(4096, 1024, dtype=k)),
            f"gelu {said}": lambda k=kind: both(F.gelu, cuda(4096, 3072, dtype=k)),
            f"sum {said}": lambda k=kind: both(lambda x: x.sum(), cuda(4096, 3072, dtype=k)),
            f"mean over batch {said}": lambda k=kind: both(lambda x: x.mean(0), cuda(4096, 3072, dtype=k)),
            f"linear with bias {said}": lambda k=kind: both(nn.Linear(1024, 4096).cuda().to(k), cuda(4096, 1024, dtype=k)),
            f"max_pool {said}": lambda k=kind: both(nn.MaxPool2d(3, 2, 1), cuda(16, 64, 112, 112, dtype=k)),
            f"avg_pool {said}": lambda k=kind: both(nn.AdaptiveAvgPool2d(1), cuda(16, 512, 14, 14, dtype=k)),
            f"interpolate {said}": lambda k=kind: both(lambda x: F.interpolate(x, scale_factor=2.0), cuda(16, 64, 32, 32, dtype=k)),
            f"bilinear {said}": lambda k=kind: both(lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"), cuda(16, 64, 32, 32, dtype=k)),
            f"dropout {said}": lambda k=kind: both(nn.Dropout(0.1), cuda(4096, 3072, dtype=k)),
            f"cumsum {said}": lambda k=kind: both(lambda x: x.cumsum(-1), cuda(4096, 1024, dtype=k)),
            f"sort {said}": lambda k=kind: both(lambda x: x.sort(-1)[0], cuda(4096, 1024, dtype=k)),
            f"topk {said}": lambda k=kind: both(lambda x: x.topk(50)[0], cuda(256, 32000, dtype=k)),
            f"index_select {said}": lambda k=kind: both(lambda x: x[labels % 512], cuda(512, 768, dtype=k)),
            f"gather {said}": lambda k=kind: both(lambda x: x.gather(1, labels[:, None]), cuda(4096, 1000, dtype=k)),
            f"flash attention {said}": lambda k=kind: attention(k, False, 0.0),
            f"flash attention dropped {said}": lambda k=kind: attention(k, False, 0.1),
            f"masked attention {said}": lambda k=kind: attention(k, True, 0.0),
            f"transposed convolution {said}": lambda k=kind: both(
                nn.ConvTranspose2d(256, 128, 4, 2, 1).cuda().to(k), cuda(16, 256, 16, 16, dtype=k)
            ),
            f"convolution 1d {said}": lambda k=kind: both(nn.Conv1d(256, 256, 5, padding=2).cuda().to(k), cuda(16, 256, 1024, dtype=k)),
            f"convolution 3d {said}": lambda k=kind: both(nn.Conv3d(32, 32, 3, padding=1).cuda().to(k), cuda(2, 32, 32, 32, 32, dtype=k)),
        }  # fmt: skip
    return [{"operator": name, **attempt(case)} for name, case in cases.items()]


def embedding(kind: torch.dtype, tokens: torch.Tensor) -> dict[str, Any]:
    module = nn.Embedding(30000, 768).cuda().to(kind)
    forward, result = allocations(lambda: module(tokens))
    seed = torch.ones_like(result)
    backward, _ = allocations(lambda: result.backward(seed))
    return {"forward": forward, "backward": backward}


def attention(kind: torch.dtype, masked: bool, dropout: float) -> dict[str, Any]:
    q, k, v = (torch.randn(4, 12, 500, 64, device="cuda", dtype=kind, requires_grad=True) for _ in range(3))
    mask = torch.ones(4, 1, 500, 500, device="cuda", dtype=torch.bool) if masked else None
    return both(lambda a, b, c: F.scaled_dot_product_attention(a, b, c, mask, dropout), q, k, v)


def attempt(action: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return action()
    except Exception as error:
        return {"error": str(error)[:300]}


def contexts() -> dict[str, Any]:
    """Bytes of the card in use after CUDA's start, and after each library's first use."""

    def used() -> int:
        torch.cuda.synchronize()
        free, total = torch.cuda.mem_get_info()
        return total - free - torch.cuda.memory_reserved()

    found = {"started": used()}
    a = torch.randn(512, 512, device="cuda")
    found["elementwise kernel"] = (a + 1) is not None and used()
    found["matrix product float32"] = (a @ a) is not None and used()
    found["matrix product bfloat16"] = (a.bfloat16() @ a.bfloat16()) is not None and used()
    found["linear with bias"] = F.linear(a, a, a[0]) is not None and used()
    x = torch.randn(8, 16, 32, 32, device="cuda")
    found["convolution float32"] = (
        F.conv2d(x, torch.randn(16, 16, 3, 3, device="cuda")) is not None and used()
    )
    found["convolution float16"] = (
        F.conv2d(x.half(), torch.randn(16, 16, 3, 3, device="cuda").half()) is not None and used()
    )
    q = torch.randn(2, 4, 128, 64, device="cuda", dtype=torch.bfloat16)
    found["flash attention"] = F.scaled_dot_product_attention(q, q, q) is not None and used()
    found["recurrent"] = nn.LSTM(32, 32).cuda()(torch.randn(8, 4, 32, device="cuda")) is not None and used()
    w = torch.randn(64, 64, device="cuda", requires_grad=True)
    (w @ w).sum().backward()
    found["backward"] = used()
    torch.optim.AdamW([w]).step()
    found["foreach optimizer"] = used()
    return found


def main() -> None:
    began = time.time()
    found: dict[str, Any] = {
        "torch": torch.__version__,
        "card": torch.cuda.get_device_name(),
        "cudnn": torch.backends.cudnn.version(),
    }
    for name, part in (
        ("contexts", contexts),
        ("operators", operators),
        ("convolutions", convolutions),
        ("recurrent", recurrent),
    ):
        try:
            found[name] = part()
        except Exception as error:
            found[name] = {"error": str(error)[:500]}
        print(name, round(time.time() - began, 1), flush=True)
        Path(sys.argv[1]).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
