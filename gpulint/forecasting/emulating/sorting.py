"""Sorting, and what sorts to do something else: the gradients of embeddings.

CUB's radix sort has a second buffer for keys and values each; short rows are sorted where they are
(`aten/src/ATen/native/cuda/Sort.cu`, `Unique.cu`).
"""

from __future__ import annotations

from typing import Any, Final

import torch

from gpulint.forecasting.emulating._tensors import on_card, size_of

_aten: Final = torch.ops.aten
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
    if row == count:
        held = [tape.hold(INDEX * count)]
    elif row > _SHORT:  # by value, then by row, with the number of the row beside the place
        held = [tape.hold(INDEX * count), tape.hold(INDEX * count), tape.hold(size_of(source))]
    else:
        return out
    tape.temporary(radix_bytes(count, key))
    for one in held:
        tape.release(one)
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
        held = tape.hold((3 if again else 1) * size_of(args[0]))
        tape.see(out)
        tape.release(held)
    return out


def _embedding_backward(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The tokens are sorted, and the rows of equal tokens summed in single precision before they are written. Few are added one by
    one (`aten/src/ATen/native/cuda/Embedding.cu`)."""
    out = tape.execute(func, args, kwargs)
    if on_card(out):
        count = args[1].numel()
        if count <= _FEW_TOKENS and not args[4]:
            return out
        _summed(tape, out, count, 4)
    return out


_FEW_TOKENS: Final = 3072


def _summed(tape: Any, out: torch.Tensor, count: int, columns: int) -> None:
    """So many columns of `count` sorted indices, beside them the result, and sums of parts of ten rows at most with where they go."""
    sorting = tape.hold(INDEX * count * columns)
    tape.see(out)
    tape.temporary((min(count, out.shape[0]) + -(-count // 10)) * (out.shape[-1] * 4 + INDEX))
    tape.release(sorting)


def _bag_backward(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The same, with the bag of each token beside it; a maximum of each bag needs no sorting."""
    out = tape.execute(func, args, kwargs)
    if on_card(out) and args[6] != _MAXIMUM:
        _summed(tape, out, args[1].numel(), 6)
    return out


_MAXIMUM: Final = 2

HOOKS: Final = {
    _aten.sort.default: _sort,
    _aten.sort.stable: _sort,
    _aten.multinomial.default: _multinomial,
    _aten.embedding_dense_backward.default: _embedding_backward,
    _aten._embedding_bag_dense_backward.default: _bag_backward,
}
