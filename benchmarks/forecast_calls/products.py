"""Products of matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from forecast_calls.calls import F16, KINDS, Call, floats, said, trained

CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "mm": (torch.mm, ((2048, 1024), (1024, 512))),
    "mm small": (torch.mm, ((64, 64), (64, 64))),
    "mm thin": (torch.mm, ((64, 65536), (65536, 64))),
    "mm tall": (torch.mm, ((65536, 64), (64, 16))),
    "mm vocabulary": (torch.mm, ((2048, 768), (768, 50257))),
    "mm transposed": (lambda a, b: a @ b.t(), ((2048, 1024), (512, 1024))),
    "mv": (torch.mv, ((4096, 1024), (1024,))),
    "dot": (torch.dot, ((100_000,), (100_000,))),
    "bmm": (torch.bmm, ((64, 256, 64), (64, 64, 256))),
    "bmm transposed": (lambda a, b: a @ b.transpose(1, 2), ((64, 256, 64), (64, 256, 64))),
    "matmul of four": (torch.matmul, ((8, 12, 256, 64), (8, 12, 64, 256))),
    "matmul broadcast": (torch.matmul, ((8, 256, 64), (64, 128))),
    "matmul permuted": (
        lambda a, b: a.transpose(1, 2) @ b.transpose(1, 2).transpose(-1, -2),
        ((8, 256, 12, 64), (8, 256, 12, 64)),
    ),
    "matmul one of many": (lambda a, b: a @ b, ((1024, 1024), (16, 1024, 64))),
    "addmm": (torch.addmm, ((512,), (2048, 1024), (1024, 512))),
    "addmm full": (torch.addmm, ((2048, 512), (2048, 1024), (1024, 512))),
    "baddbmm": (torch.baddbmm, ((64, 256, 256), (64, 256, 64), (64, 64, 256))),
    "addbmm": (torch.addbmm, ((256, 256), (64, 256, 64), (64, 64, 256))),
    "einsum bhqd,bhkd": (
        lambda a, b: torch.einsum("bhqd,bhkd->bhqk", a, b),
        ((8, 12, 256, 64), (8, 12, 256, 64)),
    ),
    "einsum bqhd,bkhd": (
        lambda a, b: torch.einsum("bqhd,bkhd->bhqk", a, b),
        ((8, 256, 12, 64), (8, 256, 12, 64)),
    ),
    "einsum bhqk,bkhd": (
        lambda a, b: torch.einsum("bhqk,bkhd->bqhd", a, b),
        ((8, 12, 256, 256), (8, 256, 12, 64)),
    ),
    "einsum weights": (lambda a, b: torch.einsum("bnd,dhk->bhnk", a, b), ((8, 256, 512), (512, 8, 64))),
    "einsum experts": (lambda a, b: torch.einsum("ecd,edf->ecf", a, b), ((8, 256, 512), (8, 512, 1024))),
    "einsum outer": (lambda a, b: torch.einsum("bi,bj->bij", a, b), ((512, 128), (512, 128))),
    "einsum channels": (lambda a, b: torch.einsum("nctv,vw->nctw", a, b), ((16, 64, 100, 25), (25, 25))),
    "einsum three": (
        lambda a, b, c: torch.einsum("bi,bj,ijk->bk", a, b, c),
        ((256, 32), (256, 32), (32, 32, 64)),
    ),
    "factorization machine": (
        lambda a, b: ((a @ b) ** 2 - (a**2) @ (b**2)).sum(-1),
        ((4096, 512), (512, 16)),
    ),
    "interactions": (lambda a: torch.bmm(a, a.transpose(1, 2)).flatten(1)[:, :351], ((2048, 27, 64),)),
    "gram": (lambda a: torch.bmm(a.flatten(2), a.flatten(2).transpose(1, 2)), ((8, 256, 64, 64),)),
}

CALLS: list[Call] = [
    trained(
        f"{name} {said(kind)}", lambda r=run, s=shapes, k=kind: (r, tuple(floats(*one, kind=k) for one in s))
    )
    for name, (run, shapes) in CASES.items()
    for kind in KINDS
]
CALLS += [
    trained(f"{name} amp", lambda r=run, s=shapes: (r, tuple(floats(*one) for one in s)), F16)
    for name, (run, shapes) in CASES.items()
    if name in ("mm", "bmm", "addmm", "baddbmm", "einsum bhqd,bhkd", "matmul broadcast")
]
