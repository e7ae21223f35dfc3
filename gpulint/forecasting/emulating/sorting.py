"""Sorting, and what sorts to do something else: the gradients of embeddings, sparse tensors.

CUB's radix sort has a second buffer for keys and values each; short rows are sorted where they are
(`aten/src/ATen/native/cuda/Sort.cu`, `Unique.cu`).
"""

from __future__ import annotations

from typing import Any, Final

import torch

from gpulint.forecasting.emulating._tensors import on_card, size_of

_aten: Final = torch.ops.aten
_graph_task: Final = torch._C._current_graph_task_id
INDEX: Final = 8  # bytes of an index
_SHORT: Final = 4096  # elements of a row that one block sorts
_TILE: Final = 4608  # elements that a block of the radix sort takes at a time


def radix_bytes(count: int, key: int) -> int:
    """What a radix sort of `count` pairs takes besides its input and output; `key` are bytes of one, beside an index."""
    return (key + INDEX) * count + 6655 + (1024 * -(-count // _TILE) if count > 2 * _TILE else 0)


def _sort(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    out = tape.execute(func, args, kwargs)
    source = args[0]
    if not on_card(source) or not source.dim():
        return out
    tape.see(out)
    count, key = source.numel(), source.element_size()
    row = source.shape[_dim(func, args, kwargs)]
    if row != count and row <= _SHORT:
        return out
    # Several rows by value, then by row, with the number of the row beside the place
    with tape.holding(*[INDEX * count] if row == count else (INDEX * count, INDEX * count, size_of(source))):
        tape.temporary(radix_bytes(count, key))
    return out


def _dim(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    place = 2 if func is _aten.sort.stable else 1
    dim: int = kwargs.get("dim", args[place] if len(args) > place else -1)
    return dim


def _multinomial(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """One drawn, or several of which none comes twice: the largest of random shares; else the sums of the probabilities."""
    out = tape.execute(func, args, kwargs)
    if on_card(args[0]):
        again = args[1] > 1 and (args[2] if len(args) > 2 else kwargs.get("replacement", False))
        with tape.holding((3 if again else 1) * size_of(args[0])):
            tape.see(out)
    return out


def _embedding_backward(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The tokens are sorted, and the rows of equal tokens summed in single precision before they are written. Few are added one by
    one (`aten/src/ATen/native/cuda/Embedding.cu`)."""
    out = tape.execute(func, args, kwargs)
    if on_card(out):
        count = args[1].numel()
        if count > _FEW_TOKENS or args[4]:
            _summed(tape, out, count, 4)
    return out


_FEW_TOKENS: Final = 3072


def _summed(tape: Any, out: torch.Tensor, count: int, columns: int) -> None:
    """So many columns of `count` sorted indices, beside them the result, and sums of parts of ten rows at most with where they go."""
    with tape.holding(INDEX * count * columns):
        tape.see(out)
        tape.temporary((min(count, out.shape[0]) + -(-count // 10)) * (out.shape[-1] * 4 + INDEX))


def _bag_backward(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The same, with the bag of each token beside it; a maximum of each bag needs no sorting."""
    out = tape.execute(func, args, kwargs)
    if on_card(out) and args[6] != _MAXIMUM:
        _summed(tape, out, args[1].numel(), 6)
    return out


_MAXIMUM: Final = 2

# -- sparse tensors: fake ones lose their elements in a copy, and cannot be put in order -------------------------------


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
    with tape.holding(*[INDEX * count] * 3):
        tape.temporary(radix_bytes(count, INDEX))
        values, indices = torch.empty_like(source._values()), torch.empty_like(source._indices())
        tape.see([values, indices])
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
    with tape.holding(4 * (count + sparse.shape[0])):
        if not sparse.is_coalesced():
            with tape.holding(*[INDEX * count] * 3):
                tape.temporary(radix_bytes(count, INDEX))
                copy = tape.hold(size_of(sparse._values()) + size_of(sparse._indices()))
            tape.release(copy)
    return out


HOOKS: Final = {
    _aten.sort.default: _sort,
    _aten.sort.stable: _sort,
    _aten.multinomial.default: _multinomial,
    _aten.embedding_dense_backward.default: _embedding_backward,
    _aten._embedding_bag_dense_backward.default: _bag_backward,
    _aten.clone.default: _clone,
    _aten._coalesce.default: _coalesce,
    _aten.sparse_mask.default: _mask,
    _aten._sparse_addmm.default: _product,
    _aten._sparse_mm.default: _product,
}
