"""Sorting, what sorts to do something else (the gradients of embeddings, sparse tensors), and writing through indices: what is added
up at equal places is sorted by place first, and a mask is made into indices.

CUB's radix sort has a second buffer for keys and values each; short rows are sorted where they are
(`aten/src/ATen/native/cuda/Sort.cu`, `Unique.cu`). Indices are as in `aten/src/ATen/native/cuda/Indexing.cu`
(`index_put_with_sort_kernel`) and `Nonzero.cu`.

Gradients that meet: the autograd engine adds the second into the first. It does so in place where it holds the last reference to the
first and to its storage (`torch/csrc/autograd/input_buffer.cpp`), but never with tensors of a subclass, as fake ones are: they would
be added into new memory.
"""

from __future__ import annotations

import math
from typing import Any, Final

import torch

from gpulint.forecasting.emulating._tensors import after, on_card, size_of, taking, taking_first

_aten: Final = torch.ops.aten
_graph_task: Final = torch._C._current_graph_task_id
_HELD_BY_THE_ENGINE: Final = 4  # references to a fake tensor that only the engine and this call hold
_HELD_BY_ONE: Final = 2  # references to its storage: by the tensor, and by the one inside it
INDEX: Final = 8  # bytes of an index
_SHORT: Final = 4096  # elements of a row that one block sorts
_TILE: Final = 4608  # elements that a block of the radix sort takes at a time


def radix_bytes(count: int, key: int) -> int:
    """What a radix sort of `count` pairs takes besides its input and output; `key` are bytes of one, beside an index."""
    return (key + INDEX) * count + 6655 + (1024 * -(-count // _TILE) if count > 2 * _TILE else 0)


def _sort(tape: Any, func: Any, out: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    source = args[0]
    if not source.dim():
        return
    count, key = source.numel(), source.element_size()
    place = 2 if func is _aten.sort.stable else 1
    row = source.shape[kwargs.get("dim", args[place] if len(args) > place else -1)]
    if row != count and row <= _SHORT:
        return
    # Several rows by value, then by row, with the number of the row beside the place
    with tape.holding(*[INDEX * count] if row == count else (INDEX * count, INDEX * count, size_of(source))):
        tape.temporary(radix_bytes(count, key))


def _shares(
    out: Any, chances: torch.Tensor, count: int, replacement: bool = False, *_: Any, **__: Any
) -> int:
    """One drawn, or several of which none comes twice: the largest of random shares; else the sums of the probabilities."""
    return (3 if count > 1 and replacement else 1) * size_of(chances)


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


# -- writing through indices ------------------------------------------------------------------------------------------


def _is_last(tensor: torch.Tensor, others: int = 0) -> bool:
    """Whether the engine holds the last reference to a tensor and to its storage, besides `others` on the way here."""
    storage = tensor.untyped_storage()._cdata
    return (
        tensor._use_count() <= _HELD_BY_THE_ENGINE + others  # type: ignore[attr-defined]
        and torch._C._storage_Use_Count(storage) <= _HELD_BY_ONE
    )


def _add(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    engine = _graph_task() != -1 and not torch.is_grad_enabled() and not kwargs
    if (
        engine
        and on_card(args[0])
        and on_card(args[1])
        and args[0].shape == args[1].shape
        and _is_last(args[0])
    ):
        return tape.execute(_aten.add_.Tensor, args, kwargs)
    return tape.execute(func, args, kwargs)


def _in_place(func: Any) -> Any:
    """Runs as `func`, which ends in an underscore, where the engine's own formula would: on zeros that it has just made. Formulas of
    the backward do so with plain tensors, and make a copy of subclasses (`areAnyTensorSubclassLike`)."""

    def run(tape: Any, plain: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not _is_fresh(args[0]):
            return tape.execute(plain, args, kwargs)
        out = tape.execute(func, args, kwargs)
        return _aten.alias.default(out) if torch.is_grad_enabled() else out

    return run


def _is_fresh(tensor: Any, others: int = 0) -> bool:
    """Whether a backward has just made a tensor, and nobody else knows it."""
    return _graph_task() != -1 and on_card(tensor) and _is_last(tensor, others)


def _put(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    target, indices = args[0], args[1]
    added = args[3] if len(args) > 3 else kwargs.get("accumulate", False)
    if not on_card(target):
        return tape.execute(func, args, kwargs)
    if len(indices) == 1 and args[2].numel() == 1 and not added and indices[0].dtype is torch.bool:
        return tape.execute(func, args, kwargs)  # a masked fill
    masks = [one for one in indices if one is not None and one.dtype is torch.bool]
    chosen = [tape.hold(INDEX * one.numel() * max(1, one.dim())) for one in masks]
    fresh = func is _aten.index_put.default and _is_fresh(target, others=1)
    out = tape.execute(_aten.index_put_.default if fresh else func, args, kwargs)
    if not fresh:
        tape.see(out)
    count = _places(indices)
    if masks:
        tape.temporary(2 * INDEX * count)
    for one in chosen:
        tape.release(one)
    if added:
        with tape.holding(*[INDEX * count] * 4):
            tape.temporary(radix_bytes(count, INDEX))
    return _aten.alias.default(out) if fresh and torch.is_grad_enabled() else out


def _places(indices: Any) -> int:
    shapes = [(one.numel(),) if one.dtype is torch.bool else one.shape for one in indices if one is not None]
    try:
        return math.prod(torch.broadcast_shapes(*shapes))
    except RuntimeError:
        return max(math.prod(shape) for shape in shapes)


def _folded(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result is made as large as the input, which is larger, and keeps that storage."""
    out = tape.execute(func, args, kwargs)
    return tape.within(out, size_of(args[0])) if on_card(args[0]) else out


def _reduced(
    out: Any, data: torch.Tensor, dim: int, index: Any, source: torch.Tensor, reduce: str, *_: Any, **__: Any
) -> int:
    """A mean counts what goes to each place: ones like the source, and their sums."""
    return size_of(source) + size_of(data) + data.numel() if reduce == "mean" else 0


HOOKS: Final = {
    _aten.sort.default: after(_sort),
    _aten.sort.stable: after(_sort),
    _aten.multinomial.default: taking_first(_shares),
    _aten.embedding_dense_backward.default: _embedding_backward,
    _aten._embedding_bag_dense_backward.default: _bag_backward,
    _aten.clone.default: _clone,
    _aten._coalesce.default: _coalesce,
    _aten.sparse_mask.default: _mask,
    _aten._sparse_addmm.default: _product,
    _aten._sparse_mm.default: _product,
    _aten.index_put.default: _put,
    _aten.index_put_.default: _put,
    _aten._index_put_impl_.default: _put,
    # The result is made as large as the input at first
    _aten.im2col.default: taking_first(lambda out, data, *_, **__: size_of(data)),
    _aten.col2im.default: _folded,
    _aten.scatter_reduce.two: taking(_reduced),
    _aten.add.Tensor: _add,
    _aten.index_add.default: _in_place(_aten.index_add_.default),
    _aten.scatter_add.default: _in_place(_aten.scatter_add_.default),
    _aten.scatter.src: _in_place(_aten.scatter_.src),
    _aten.scatter.value: _in_place(_aten.scatter_.value),
}
