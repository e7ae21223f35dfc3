"""Products of matrices."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from forecast_calls.calls import F16, F32, Call, Made, floats, of, trained

CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "mm": (torch.mm, ((2048, 1024), (1024, 512))), "mm small": (torch.mm, ((64, 64), (64, 64))),
    "mm thin": (torch.mm, ((64, 65536), (65536, 64))), "mm tall": (torch.mm, ((65536, 64), (64, 16))),
    "mm vocabulary": (torch.mm, ((2048, 768), (768, 50257))),
    "mm transposed": (lambda a, b: a @ b.t(), ((2048, 1024), (512, 1024))),
    "mv": (torch.mv, ((4096, 1024), (1024,))), "dot": (torch.dot, ((100_000,), (100_000,))),
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
    "einsum bhqd,bhkd": (partial(torch.einsum, "bhqd,bhkd->bhqk"), ((8, 12, 256, 64), (8, 12, 256, 64))),
    "einsum bqhd,bkhd": (partial(torch.einsum, "bqhd,bkhd->bhqk"), ((8, 256, 12, 64), (8, 256, 12, 64))),
    "einsum bhqk,bkhd": (partial(torch.einsum, "bhqk,bkhd->bqhd"), ((8, 12, 256, 256), (8, 256, 12, 64))),
    "einsum weights": (partial(torch.einsum, "bnd,dhk->bhnk"), ((8, 256, 512), (512, 8, 64))),
    "einsum experts": (partial(torch.einsum, "ecd,edf->ecf"), ((8, 256, 512), (8, 512, 1024))),
    "einsum outer": (partial(torch.einsum, "bi,bj->bij"), ((512, 128), (512, 128))),
    "einsum channels": (partial(torch.einsum, "nctv,vw->nctw"), ((16, 64, 100, 25), (25, 25))),
    "einsum three": (partial(torch.einsum, "bi,bj,ijk->bk"), ((256, 32), (256, 32), (32, 32, 64))),
    "factorization machine": (
        lambda a, b: ((a @ b) ** 2 - (a**2) @ (b**2)).sum(-1), ((4096, 512), (512, 16)),
    ),
    "interactions": (lambda a: torch.bmm(a, a.transpose(1, 2)).flatten(1)[:, :351], ((2048, 27, 64),)),
    "gram": (lambda a: torch.bmm(a.flatten(2), a.flatten(2).transpose(1, 2)), ((8, 256, 64, 64),)),
}  # fmt: skip


def made(run: Callable[..., Any], shapes: tuple[tuple[int, ...], ...], kind: torch.dtype = F32) -> Made:
    return run, tuple(floats(*shape, kind=kind) for shape in shapes)


AMP = ("mm", "bmm", "addmm", "baddbmm", "einsum bhqd,bhkd", "matmul broadcast")
CALLS: list[Call] = [
    *(call for name, case in CASES.items() for call in of(name, partial(made, *case))),
    *(trained(f"{name} amp", partial(made, *CASES[name]), F16) for name in AMP),
]
