"""Indices: gather, scatter, index_add and what graphs and detectors are made of."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from forecast_calls.calls import F32, KINDS, Call, Made, each, floats, of, plain, said, trained, whole

NODES, EDGES, WIDTH = 10_000, 100_000, 64


def message(x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
    source, target = edges
    return torch.zeros_like(x).index_add(0, target, x[source])


def scattered(x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
    source, target = edges
    picked = x.index_select(0, source)
    return torch.zeros_like(x).scatter_add_(0, target[:, None].expand_as(picked), picked)


def reduced(x: torch.Tensor, edges: torch.Tensor, how: str) -> torch.Tensor:
    source, target = edges
    picked = x[source]
    return torch.zeros_like(x).scatter_reduce(
        0, target[:, None].expand_as(picked), picked, how, include_self=False
    )


def attended(x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
    source, target = edges
    score = F.leaky_relu(x[source].sum(-1) + x[target].sum(-1))
    score = (score - score.detach().max()).exp()
    total = torch.zeros(x.shape[0], device=x.device, dtype=x.dtype).index_add(0, target, score)
    weight = score / (total[target] + 1e-6)
    return torch.zeros_like(x).index_add(0, target, weight[:, None] * x[source])


def normalized(x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
    source, target = edges
    degree = torch.bincount(target, minlength=x.shape[0]).clamp(min=1).to(x.dtype)
    weight = degree[source].rsqrt() * degree[target].rsqrt()
    return torch.zeros_like(x).index_add_(0, target, x[source] * weight[:, None])


def product_of_sparse(x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
    adjacency = torch.sparse_coo_tensor(edges, torch.ones(edges.shape[1], device=x.device), (NODES, NODES))
    return torch.sparse.mm(adjacency, x)


def product_of_rows(x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
    adjacency = torch.sparse_coo_tensor(edges, torch.ones(edges.shape[1], device=x.device), (NODES, NODES))
    return adjacency.coalesce().to_sparse_csr() @ x


def graphs() -> list[Call]:
    def made(run: Callable[..., Any], kind: torch.dtype = F32) -> Made:
        return run, (floats(NODES, WIDTH, kind=kind), whole(NODES, 2, EDGES))

    kinds = {"index_add": message, "scatter_add": scattered, "attention": attended, "degrees": normalized}
    found = [call for name, run in kinds.items() for call in of(f"graph {name}", partial(made, run))]
    for how in ("mean", "amax", "sum"):
        found.append(trained(f"graph scatter_reduce {how}", partial(made, partial(reduced, how=how))))
    return [
        *found,
        trained("graph sparse product", partial(made, product_of_sparse)),
        trained("graph csr product", partial(made, product_of_rows)),
    ]  # fmt: skip


def indexing() -> list[Call]:
    def moved(kind: torch.dtype) -> Made:
        return lambda x, i: x.index_copy(0, i, x[: i.shape[0]] * 2), (
            floats(4096, 256, kind=kind),
            torch.arange(1000, device="cuda"),
        )

    def put(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return x.clone().index_put_((i,), x[: i.shape[0]] * 2, accumulate=True)

    def assigned(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        out = x.clone()
        out[mask] = 0.0
        return out

    def sliced(x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros(x.shape[0], 2 * x.shape[1], device=x.device, dtype=x.dtype)
        out[:, : x.shape[1]] = x
        return out

    found: list[Call] = []
    for kind in KINDS:
        grid = lambda k=kind: floats(4096, 1024, kind=k)  # noqa: E731
        found += [
            trained(f"index {said(kind)}", lambda g=grid: (lambda x, i: x[i], (g(), whole(4096, 5000)))),
            trained(f"index of pairs {said(kind)}", lambda g=grid: (lambda x, i, j: x[i, j], (g(), whole(4096, 5000), whole(1024, 5000)))),
            trained(f"index of columns {said(kind)}", lambda g=grid: (lambda x, i: x[:, i], (g(), whole(1024, 512)))),
            trained(f"index by range {said(kind)}", lambda g=grid: (lambda x, i: x[torch.arange(4096, device="cuda"), i], (g(), whole(1024, 4096)))),
            trained(f"index_select {said(kind)}", lambda g=grid: (lambda x, i: x.index_select(0, i), (g(), whole(4096, 5000)))),
            trained(f"index_select columns {said(kind)}", lambda g=grid: (lambda x, i: x.index_select(1, i), (g(), whole(1024, 512)))),
            trained(f"gather {said(kind)}", lambda g=grid: (lambda x, i: x.gather(1, i), (g(), whole(1024, 4096, 1)))),
            trained(f"gather wide {said(kind)}", lambda g=grid: (lambda x, i: x.gather(1, i), (g(), whole(1024, 4096, 1024)))),
            trained(f"take_along_dim {said(kind)}", lambda g=grid: (lambda x, i: x.take_along_dim(i, 1), (g(), whole(1024, 4096, 8)))),
            trained(f"scatter {said(kind)}", lambda g=grid: (lambda x, i: x.scatter(1, i, x[:, :8] * 2), (g(), whole(1024, 4096, 8)))),
            trained(f"masked_select {said(kind)}", lambda g=grid: (lambda x: x[x.detach() > -100], (g(),))),
            trained(f"masked rows {said(kind)}", lambda g=grid: (lambda x: x[x.detach()[:, 0] > -100], (g(),))),
            trained(f"index_copy {said(kind)}", lambda k=kind: moved(k)),
            trained(f"index_put accumulate {said(kind)}", lambda g=grid: (put, (g(), whole(4096, 2000)))),
            trained(f"mask assigned {said(kind)}", lambda g=grid: (assigned, (g(), torch.ones(4096, 1024, dtype=torch.bool, device="cuda")))),
            trained(f"slice assigned {said(kind)}", lambda g=grid: (sliced, (g(),))),
            trained(f"masked_scatter {said(kind)}", lambda g=grid: (lambda x: x.masked_scatter(torch.ones_like(x, dtype=torch.bool), x * 2), (g(),))),
        ]  # fmt: skip
    return [
        *found,
        trained("index of images", lambda: (lambda x, i: x[i], (floats(64, 64, 32, 32), whole(64, 64)))),
        trained("patches chosen", lambda: (lambda x, i: x.gather(1, i[..., None].expand(-1, -1, 768)), (floats(64, 196, 768), torch.rand(64, 49, device="cuda").argsort(1)))),
        trained("relative positions", lambda: (lambda w, i: w[i.view(-1)].view(49, 49, 12).permute(2, 0, 1).contiguous(), (floats(169, 12), whole(169, 49, 49)))),
        *each("windows", lambda x: x.view(8, 8, 7, 8, 7, 96).permute(0, 1, 3, 2, 4, 5).reshape(-1, 49, 96), (8, 56, 56, 96)),
        plain("meshgrid", lambda: (lambda n: torch.stack(torch.meshgrid(torch.arange(n, device="cuda"), torch.arange(n, device="cuda"), indexing="ij"), -1).reshape(-1, 2).float(), (256,))),
        plain("vectors of triples", lambda: (lambda x: torch.combinations(x, 2), (torch.arange(500, device="cuda"),))),
        plain("nested padding", lambda: (lambda xs: nn.utils.rnn.pad_sequence(xs, batch_first=True), ([floats(n, 64, grad=False) for n in (10, 50, 99, 128)],))),
    ]  # fmt: skip


def vision() -> list[Call]:
    """Of torchvision, where there is one."""

    def ops() -> Any:
        import torchvision.ops

        return torchvision.ops

    def boxes(count: int) -> torch.Tensor:
        low = torch.rand(count, 2, device="cuda") * 200
        return torch.cat([low, low + 4 + torch.rand(count, 2, device="cuda") * 100], 1)

    def indexed(count: int) -> torch.Tensor:
        return torch.cat([whole(2, count, 1).float(), boxes(count)], 1)

    return [
        trained("roi_align", lambda: (lambda x, b: ops().roi_align(x, b, 7, 0.25, 2), (floats(2, 256, 100, 100), indexed(512)))),
        trained("roi_align masks", lambda: (lambda x, b: ops().roi_align(x, b, 14, 0.25, 2), (floats(2, 256, 100, 100), indexed(128)))),
        trained("roi_align amp", lambda: (lambda x, b: ops().roi_align(x, b, 7, 0.25, 2), (floats(2, 256, 100, 100), indexed(512))), torch.float16),
        trained("roi_pool", lambda: (lambda x, b: ops().roi_pool(x, b, 7, 0.25), (floats(2, 256, 100, 100), indexed(512)))),
        plain("nms", lambda: (lambda b, s: ops().nms(b, s, 0.5), (boxes(4000), torch.rand(4000, device="cuda")))),
        plain("batched_nms", lambda: (lambda b, s, i: ops().batched_nms(b, s, i, 0.5), (boxes(4000), torch.rand(4000, device="cuda"), whole(80, 4000)))),
        plain("box_iou", lambda: (lambda a, b: ops().box_iou(a, b), (boxes(4000), boxes(50)))),
        trained("giou loss", lambda: (lambda a, b: ops().generalized_box_iou_loss(a, b, reduction="mean"), (boxes(4000).requires_grad_(), boxes(4000)))),
        trained("sigmoid_focal_loss", lambda: (lambda x, t: ops().sigmoid_focal_loss(x, t, reduction="sum"), (floats(20000, 80), torch.ones(20000, 80, device="cuda")))),
        trained("deform_conv2d", lambda: (lambda x, o, w: ops().deform_conv2d(x, o, w, padding=1), (floats(4, 64, 32, 32), floats(4, 18, 32, 32), floats(64, 64, 3, 3)))),
        trained("stochastic_depth", lambda: (lambda x: ops().stochastic_depth(x, 0.1, "row"), (floats(32, 196, 768),))),
    ]  # fmt: skip


CALLS = [*graphs(), *indexing(), *vision()]
