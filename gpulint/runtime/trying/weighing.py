"""Weights as figures: one norm after a step, checksums and sums of all of them at the end."""

from __future__ import annotations

import contextlib
import hashlib
import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch

from gpulint.runtime.record.recording import Drawn, Weight

_CHUNK = 1 << 20  # elements that are looked at together, so that little memory is needed beside the weights
_LARGE = 1 << 23  # elements beyond which not every one is looked at: training changes all of them
_MOST = 20_000  # weights of one run
_PRIME = 2_654_435_761


def plain(tensor: Any) -> torch.Tensor:
    """A tensor that can be summed: dense, real, this rank's part of it."""
    tensor = tensor.detach()
    if hasattr(tensor, "to_local"):
        tensor = tensor.to_local()
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    found: torch.Tensor = tensor
    return found


def norm_of(optimizer: Any) -> torch.Tensor | None:
    """The norm of everything that an optimizer optimizes, as a float64 tensor that nothing has waited for."""
    alike: dict[tuple[torch.device, torch.dtype], list[torch.Tensor]] = {}
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if isinstance(parameter, torch.Tensor) and parameter.numel():
                one = plain(parameter)
                alike.setdefault((one.device, one.dtype), []).append(one)
    total: torch.Tensor | None = None
    for (device, _), tensors in alike.items():
        norms = torch.stack(torch._foreach_norm(tensors)).double()
        weights = torch.arange(1, len(norms) + 1, dtype=torch.float64, device=device)
        one = (norms * weights).sum()  # weighted, so that no two changes cancel out
        total = one if total is None else total + one.to(total.device)
    return total


def weights_of(optimizers: Sequence[Any], modules: Sequence[Any], when: str) -> tuple[list[Weight], int]:
    """Each weight once, as it is now, and how many could not be read. `when` becomes part of their names."""
    found: dict[str, Weight] = {}
    seen: set[int] = set()
    lacking = 0
    for name, tensor in _named(optimizers, modules):
        if id(tensor) in seen or len(found) >= _MOST:
            continue
        seen.add(id(tensor))
        try:
            found[name] = _weight(f"{name}, {when}", tensor)
        except (RuntimeError, NotImplementedError, TypeError, ValueError, AttributeError):
            lacking += 1
    return list(found.values()), lacking


def _named(optimizers: Iterable[Any], modules: Iterable[Any]) -> Iterator[tuple[str, torch.Tensor]]:
    for number, module in enumerate(modules):
        kind = type(module).__name__
        for parts in (module.named_parameters(), module.named_buffers()):
            for name, tensor in parts:
                yield f"{kind} {number}: {name}", tensor
    for number, optimizer in enumerate(optimizers):
        kind = type(optimizer).__name__
        for index, group in enumerate(optimizer.param_groups):
            for place, parameter in enumerate(group["params"]):
                if isinstance(parameter, torch.Tensor):
                    yield f"{kind} {number}: parameter {index}.{place}", parameter


def _weight(name: str, tensor: torch.Tensor) -> Weight:
    """Computed on the host: what is measured on a GPU must not see it."""
    checksum, total, square, place = 0, 0.0, 0.0, 0
    for part in _parts(plain(tensor)):
        checksum ^= _checksum(part, place)
        place += len(part)
        numbers = part.to(torch.float64)
        total += float(numbers.sum())
        square += float(numbers.square().sum())
    return Weight(name, tuple(tensor.shape), checksum, total, square**0.5)


def _parts(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """A tensor's elements on the host, in pieces; of a very large one the first and the last."""
    if tensor.is_contiguous() and tensor.numel() > _LARGE:
        flat = tensor.view(-1)
        pieces: Sequence[torch.Tensor] = (flat[: _LARGE // 2], flat[-_LARGE // 2 :])
    else:
        pieces = (tensor.cpu().contiguous().view(-1),)
    for piece in pieces:
        host = piece.cpu()
        for begin in range(0, len(host), _CHUNK):
            yield host[begin : begin + _CHUNK]


def _checksum(part: torch.Tensor, begin: int) -> int:
    """A number for the bits of a piece that begins at a place."""
    data = part.view(torch.uint8)
    if len(data) % 4 == 0:
        data = data.view(torch.int32)
    places = torch.arange(begin + 1, begin + 1 + len(data), dtype=torch.int64, device=data.device)
    mixed = (places * _PRIME) ^ (places << 7) | 1
    return int((data.to(torch.int64) * mixed).sum())


def drawn() -> tuple[Drawn, ...]:
    """The states of the generators that a script draws from if it names none."""
    states = [("python", repr(random.getstate()).encode())]
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        with contextlib.suppress(Exception):
            states.append(("numpy", repr(numpy.random.get_state(legacy=False)["state"]).encode()))
    states.append(("torch", bytes(torch.get_rng_state().tolist())))
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        for number in range(torch.cuda.device_count()):
            with contextlib.suppress(Exception):
                state = torch.cuda.default_generators[number].get_state()
                states.append((f"cuda:{number}", bytes(state.tolist())))
    return tuple(Drawn(name, hashlib.blake2b(state, digest_size=8).hexdigest()) for name, state in states)
