"""Matrix products: cuBLAS takes a workspace from torch's allocator with the first product of each thread, and keeps it."""

from __future__ import annotations

import threading
from typing import Any, Final

import torch

from gpulint.forecasting.emulating._tensors import on_card

_aten: Final = torch.ops.aten


def _product(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    out = tape.execute(func, args, kwargs)
    if on_card(out) and out.numel():
        tape.see(out)
        # The autograd engine has a thread of its own for the card, and so a second handle.
        thread = threading.get_ident()
        tape.permanent(tape.card.cublas_workspace, f"cuBLAS workspace {thread}")
        if func is _aten.addmm.default and args[0].dim() == 1:  # the bias is added by cublasLt
            tape.permanent(tape.card.cublaslt_workspace, f"cublasLt workspace {thread}")
    return out


HOOKS: Final = dict.fromkeys(
    (
        _aten.mm.default,
        _aten.bmm.default,
        _aten.addmm.default,
        _aten.baddbmm.default,
        _aten.addbmm.default,
        _aten.mv.default,
        _aten.addmv.default,
        _aten.dot.default,
    ),
    _product,
)
