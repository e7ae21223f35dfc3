"""Writes down what the script computes, without disturbing it: values that go backward, the weights' norm after each step, and at
the end every weight.

Nothing here waits for the GPU before the end: a value is summed there into a buffer of its own, which is read once. Nothing is
drawn from a generator, and no network, optimizer or graph is kept alive.
"""

from __future__ import annotations

import contextlib
import hashlib
import random
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from gpulint.runtime.probes import hooks
from gpulint.runtime.probes.dispatch import tensors_in
from gpulint.runtime.record.besides import MOST, Drawn, Position, Recording, Weight

_CHUNK = 1 << 20  # elements that are looked at together, so that little memory is needed beside the weights
_LARGE = 1 << 23  # elements beyond which not every one is looked at: training changes all of them
_MOST = 20_000  # weights of one run


def dense(tensor: Any) -> torch.Tensor:
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
    for parameter in hooks.parameters_of(optimizer):
        if isinstance(parameter, torch.Tensor) and parameter.numel():
            one = dense(parameter)
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
    bits, total, square = hashlib.blake2b(digest_size=8), 0.0, 0.0
    for part in _parts(dense(tensor)):
        data = part.view(torch.uint8)
        copy = bytearray(len(data))
        torch.frombuffer(copy, dtype=torch.uint8).copy_(data)
        bits.update(copy)
        numbers = part.to(torch.float64)
        total += float(numbers.sum())
        square += float(numbers.square().sum())
    return Weight(name, tuple(tensor.shape), int.from_bytes(bits.digest(), "big"), total, square**0.5)


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


class Series:
    """Values in order, the first `MOST` of them. Those on a GPU stay there until they are asked for."""

    def __init__(self) -> None:
        self.count = 0
        self._values: dict[int, float | None] = {}
        self._buffers: dict[torch.device, torch.Tensor] = {}
        self._where: dict[int, torch.device] = {}

    def add(self, value: torch.Tensor | float | None) -> None:
        """One more value: a number, or a float64 tensor with one."""
        place, self.count = self.count, self.count + 1
        if place >= MOST:
            return
        if not isinstance(value, torch.Tensor) or value.device.type == "cpu":
            self._values[place] = None if value is None else float(value)
            return
        buffer = self._buffers.get(value.device)
        if buffer is None:
            buffer = self._buffers[value.device] = torch.zeros(MOST, dtype=value.dtype, device=value.device)
        buffer[place].copy_(value)
        self._where[place] = value.device

    def read(self) -> tuple[float | None, ...]:
        """All values so far."""
        lists = {device: buffer.tolist() for device, buffer in self._buffers.items()}
        for place, device in self._where.items():
            self._values[place] = lists[device][place]
        return tuple(self._values[place] for place in range(min(self.count, MOST)))


class Recorder:
    """One process's recorder. `update` and `event` count how far it has come."""

    def __init__(self) -> None:
        self.updates = self.events = 0
        self._losses, self._norms = Series(), Series()
        self._optimizers: list[weakref.ref[Any]] = []
        self._modules: list[weakref.ref[Any]] = []
        self._weights: list[Weight] = []
        self._notes: list[str] = []
        self._seen: set[int] = set()
        self._inside = 0  # backwards within a backward belong to the one around them

    # -- how far ---------------------------------------------------------------------------------------------

    def update(self) -> None:
        """An optimizer has stepped, or what stands for that."""
        self.updates, self.events = self.updates + 1, 0

    def event(self, module: Any = None) -> None:
        """An outermost forward, or a batch, comes."""
        self.events += 1
        if module is not None and id(module) not in self._seen:
            self._seen.add(id(module))
            self._modules.append(weakref.ref(module))

    @property
    def position(self) -> Position:
        return Position(self.updates, self.events)

    def has_reached(self, place: Position) -> bool:
        """Whether the run has come as far as that."""
        return (self.updates, self.events) >= (place.updates, place.events)

    # -- what is watched -------------------------------------------------------------------------------------

    def start(self) -> None:
        """Watch what goes backward."""
        self._undo = hooks.together(
            hooks.around(torch.autograd, "backward", self._begins, ended=self._ended),
            hooks.around(torch.autograd, "grad", self._begins, self._gave, self._ended),
        )

    def stop(self) -> None:
        """Put the originals back."""
        self._undo()

    def stepped(self, optimizer: Any) -> None:
        """An optimizer has stepped: note what that made of its weights."""
        if id(optimizer) not in self._seen:
            self._seen.add(id(optimizer))
            self._optimizers.append(weakref.ref(optimizer))
        if _is_capturing():
            return
        with _aside():
            self._norms.add(_quietly(norm_of, optimizer))

    def _begins(self, *args: Any, tensors: Any = None, outputs: Any = None, **_: Any) -> None:
        """A backward, or a `torch.autograd.grad`, of the first argument, whatever its name."""
        self._note(args[0] if args else outputs if tensors is None else tensors)
        self._inside += 1

    def _ended(self) -> None:
        self._inside -= 1

    def _gave(self, found: Any, *_: Any, **__: Any) -> None:
        self._note(found)

    def _note(self, tensors: Any) -> None:
        if self._inside or torch.compiler.is_compiling() or _is_capturing():
            return
        with _aside():
            self._losses.add(_quietly(_total, tensors))

    # -- the end ---------------------------------------------------------------------------------------------

    def weigh(self, when: str) -> None:
        """Write every weight down. At the end of a script that trains in a function its networks are gone."""
        with _aside():
            optimizers = [one for ref in self._optimizers if (one := ref()) is not None]
            modules = [one for ref in self._modules if (one := ref()) is not None]
            weights, lacking = weights_of(optimizers, modules, when)
        self._weights += weights
        if lacking:
            self._notes.append(f"{when}, {lacking} weights could not be read, and are not compared")

    def recording(self) -> Recording:
        """Everything so far."""
        if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            torch.cuda.synchronize()  # values may have been noted on streams of the script's own
        self.weigh("at the end")
        more = sum(max(0, series.count - MOST) for series in (self._losses, self._norms))
        losses, norms = self._losses.read(), self._norms.read()
        weights, notes = tuple(self._weights), tuple(self._notes)
        return Recording(self.position, losses, norms, more, weights, drawn(), notes=notes)


@contextlib.contextmanager
def _aside() -> Iterator[None]:
    """What runs in here is ours: no graph, no modes of the script or of a probe."""
    with torch.no_grad(), torch._C.DisableTorchFunction(), _disable_current_modes():
        yield


def _quietly(read: Callable[[Any], torch.Tensor | None], of: Any) -> torch.Tensor | None:
    """What `read` gives; None for tensors of kinds that cannot be summed."""
    with contextlib.suppress(RuntimeError, NotImplementedError, TypeError, ValueError, AttributeError):
        return read(of)
    return None


def _total(value: Any) -> torch.Tensor | None:
    """One number for all tensors in a value, as a float64 tensor: sums, weighted by their order."""
    total: torch.Tensor | None = None
    for number, tensor in enumerate(tensors_in(value), 1):
        one = dense(tensor).sum(dtype=torch.float64) * number
        total = one if total is None else total + one.to(total.device)
    return total


def _is_capturing() -> bool:
    return bool(torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing())  # type: ignore[no-untyped-call]
