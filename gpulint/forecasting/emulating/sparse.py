"""Sparse tensors: fake ones lose their elements in a copy, and cannot be put in order."""

from __future__ import annotations

from typing import Any, Final

import torch

from gpulint.forecasting.emulating._tensors import on_card, size_of
from gpulint.forecasting.emulating.sorting import INDEX, radix_bytes

_aten: Final = torch.ops.aten
_graph_task: Final = torch._C._current_graph_task_id


def _made(of: Any, indices: torch.Tensor, values: torch.Tensor, ordered: bool) -> Any:
    return _aten._sparse_coo_tensor_unsafe.default(indices, values, of.shape, is_coalesced=ordered)


def _clone(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A gradient that is accumulated is not copied: its parts are taken over."""
    source = args[0]
    if not on_card(source) or source.layout is not torch.sparse_coo:
        return tape.execute(func, args, kwargs)
    if _graph_task() != -1 and not torch.is_grad_enabled():
        return _made(source, source._indices(), source._values(), source.is_coalesced())
    return _made(source, source._indices().clone(), source._values().clone(), source.is_coalesced())


def _coalesce(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The places are made one number each and sorted; no two are taken to be the same
    (`aten/src/ATen/native/sparse/cuda/SparseCUDATensor.cu`)."""
    source = args[0]
    count = source._nnz()
    held = [tape.hold(INDEX * count) for _ in range(3)]
    tape.temporary(radix_bytes(count, INDEX))
    values, indices = torch.empty_like(source._values()), torch.empty_like(source._indices())
    tape.see([values, indices])
    for one in held:
        tape.release(one)
    return _made(source, indices, values, True)


def _mask(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The elements of a dense tensor at the places of a sparse one."""
    places = args[1]
    return _made(places, places._indices().clone(), torch.empty_like(places._values()), places.is_coalesced())


def _product(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """cuSPARSE takes rows: of places that are not in order, an ordered copy is made, and the rows' begins are counted."""
    sparse = next((one for one in args if on_card(one) and one.layout is torch.sparse_coo), None)
    out = tape.execute(func, args, kwargs)
    if sparse is None:
        return out
    tape.see(out)
    count = sparse._nnz()
    rows = tape.hold(4 * (count + sparse.shape[0]))
    if not sparse.is_coalesced():
        held = [tape.hold(INDEX * count) for _ in range(3)]
        tape.temporary(radix_bytes(count, INDEX))
        copy = tape.hold(size_of(sparse._values()) + size_of(sparse._indices()))
        for one in (*held, copy):
            tape.release(one)
    tape.release(rows)
    return out


HOOKS: Final = {
    _aten.clone.default: _clone,
    _aten._coalesce.default: _coalesce,
    _aten.sparse_mask.default: _mask,
    _aten._sparse_addmm.default: _product,
    _aten._sparse_mm.default: _product,
}
