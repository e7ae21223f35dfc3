"""Sees the calls of outermost modules: they mark steps, and what they leave allocated are saved activations,
which were saved for nothing where no backward comes."""

from __future__ import annotations

import heapq
import itertools
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from gpulint.runtime.probes import hooks
from gpulint.runtime.probes.frames import Frames
from gpulint.runtime.probes.plain import attributes_of, elements_of, has_parameters
from gpulint.runtime.record.drift import rounded
from gpulint.runtime.record.result import ForwardFigures, Site

# Calls of one kind from one place that are followed to their end, or measured where they save nothing. Of those that save
# something every 2ⁿ-th call is followed then, and all are measured.
FOLLOWED = 8
ENDS = 8  # nodes that are watched at either end of a call's graph
MOST_SIZES = 1000  # of one dimension of what a network is given
FEWEST_SIZES = 3  # that show that it grows
AGAIN = 3  # times that each has come, on average
MOST_NODES = 1000  # visited in search of the first ones


_Place = tuple[int, str, bool]  # site, kind of module, whether it trains


class _State(threading.local):
    depth = 0
    training = False  # the outermost module's mode


@dataclass(slots=True, eq=False)
class _Cell:
    """The calls of one kind from one place. `wasted` has, for each call whose graph died without a backward,
    what the call kept."""

    weights: bool
    inner: bool
    count: int = 0
    kept: int = 0
    output: int = 0
    visited: int = 0
    seconds: float = 0.0
    wasted: list[int] = field(default_factory=list)

    def figures(self, site: Site, module: str, training: bool, grad: bool) -> ForwardFigures:
        """As the result has them."""
        dead, wasted = len(self.wasted), statistics.median_high(self.wasted) if self.wasted else None
        graph = self.visited, dead, wasted, self.weights, self.inner
        told = site, module, training, grad, self.count, self.kept, self.output, self.seconds
        return ForwardFigures(*told, *graph)


@dataclass(slots=True, eq=False)
class _Fate:
    """What becomes of one call's graph. Held by hooks on some of the graph's nodes and by nothing else, so it
    dies when they have died; holds no tensor and no node, so it keeps nothing alive."""

    cell: _Cell
    kept: int
    visited: bool = False
    handles: list[Any] = field(default_factory=list)

    def __call__(self, gradients: Any) -> None:
        """A backward goes through: before a node's gradients are computed."""
        if not self.visited:
            self.visited = True
            self.cell.visited += 1
        for handle in self.handles:
            handle.remove()
        self.handles.clear()

    def __del__(self) -> None:
        if not self.visited and self.handles:
            self.cell.wasted.append(self.kept)


class Forwards:
    """Wraps `torch.nn.Module.__call__`. Global module hooks would do the same at twice the cost, and
    torch.compile warns of them.

    `on_root(module)` is called before each outermost forward; `allocated()` reads the probe.
    """

    def __init__(self, frames: Frames, on_root: Callable[[Any], None], allocated: Callable[[], int]) -> None:
        self.active = True
        self.resting = False  # only evaluations are of interest now
        self._frames = frames
        self._on_root = on_root
        self.allocated = allocated
        # How often what outermost modules were given has had a size, by module, mode, argument and dimension
        self._inputs: dict[tuple[str, bool, int, int], Counter[int]] = {}
        self._state = _State()
        self._cells: dict[tuple[int, str, bool, bool], _Cell] = {}
        self._sequence: Callable[[], int] = torch._C._autograd._get_sequence_nr
        self._original: Any = None
        self._undo: hooks.Undo = lambda: None

    def start(self) -> None:
        self._original = torch.nn.Module.__call__
        self._undo = hooks.wrap(torch.nn.Module, "__call__", self._watched)

    def _watched(self, original: Any) -> Any:
        forwards, state, watch = self, self._state, self._watch
        is_compiling = torch.compiler.is_compiling

        # As torch's own is: torch's profiler knows it by its code, and asks its frames for the local `self`.
        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return original(self, *args, **kwargs)
            if state.depth and (self.training or not state.training or forwards.resting):
                return original(self, *args, **kwargs)
            return watch(self, args, kwargs)

        return __call__

    def stop(self) -> None:
        """Put the original back."""
        self.active = False
        self._undo()

    def _comes(self, module: Any, args: Any, kwargs: Any) -> None:
        for position, tensor in enumerate(_tensors([*args, *kwargs.values()])):
            for number, size in enumerate(tensor.shape):
                key = (type(module).__name__, bool(module.training), position, number)
                sizes = self._inputs.setdefault(key, Counter())
                if len(sizes) < MOST_SIZES:
                    sizes[size] += 1
        self._on_root(module)

    def growing_inputs(self) -> tuple[float, set[int]]:
        """How many times as large as at first is what networks are given, where it grows now and then, and the sizes of it so far. What
        comes in ever new sizes, or in some of no order, is none that grows."""
        times, growing = 1.0, False
        for sizes in self._inputs.values():
            rises = all(earlier < later for earlier, later in itertools.pairwise(sizes))
            if rises and len(sizes) >= FEWEST_SIZES and sum(sizes.values()) >= AGAIN * len(sizes):
                times, growing = max(times, max(sizes) / max(1, min(sizes))), True
        return times, {size for sizes in self._inputs.values() for size in sizes} if growing else set()

    def _watch(self, module: Any, args: Any, kwargs: Any) -> Any:
        if not self.active:
            return self._original(module, *args, **kwargs)
        state = self._state
        unwatched = self.resting and bool(module.training)
        if state.depth == 0:
            self._comes(module, args, kwargs)
        outer_training, state.training = state.training, bool(module.training)
        # Read only where it can tell more: of calls that save nothing the first ones have told it.
        place = (self._frames.index(sys._getframe(1)), type(module).__name__, state.training)
        known = None if torch.is_grad_enabled() or unwatched else self._cells.get((*place, False))
        measured = not unwatched and (known is None or known.count < FOLLOWED)
        state.depth += 1
        first, before = self._sequence(), self.allocated() if measured else 0
        begin = time.perf_counter()
        try:
            out = self._original(module, *args, **kwargs)
        finally:
            state.depth -= 1
            state.training = outer_training
        took = time.perf_counter() - begin
        if measured:
            self._note(module, place, out, self.allocated() - before, took, args, first)
        elif known is not None:
            known.count += 1
            known.seconds += took
        return out

    def _note(
        self, module: Any, place: _Place, out: Any, rise: int, took: float, args: Any, first: int
    ) -> None:
        tensors = list(_tensors(out))
        grad = any(tensor.grad_fn is not None for tensor in tensors)
        cell = self._cells.get((*place, grad))
        if cell is None:
            cell = self._cells[(*place, grad)] = _Cell(has_parameters(module), self._state.depth > 0)
        cell.count = count = cell.count + 1
        cell.seconds += took
        output = _storage_bytes(tensors, _tensors(args))
        kept = max(0, rise - output)
        # The first call may have made cuBLAS workspaces, which are no activations; a second one replaces it.
        if kept > cell.kept or count <= 2:
            cell.kept, cell.output = kept, output
        if grad and (count <= FOLLOWED or not count & (count - 1)):
            _follow(_Fate(cell, kept), tensors, first)

    def is_visited(self, site: int, module: str) -> bool:
        """Whether a backward ever went through what such a module made, in train mode, at this place."""
        cell = self._cells.get((site, module, True, True))
        return cell is not None and cell.visited > 0

    def figures(self) -> list[ForwardFigures]:
        """What was seen from the user's code, the largest first."""
        seen = ((self._frames.sites[of[0]], of[1:], cell) for of, cell in self._cells.items() if of[0])
        found = [cell.figures(site, *kind) for site, kind, cell in seen]
        return sorted(found, key=lambda forward: (-(forward.kept or 0), forward.site.line))


def _follow(fate: _Fate, tensors: list[Any], first: int) -> None:
    """Have `fate` told when a backward goes through the graph behind the tensors, and when the graph dies.

    The hooks are on nodes, not on tensors: nothing of them is copied or pickled with a tensor. Some are at the
    graph's beginning, because a loss may be taken from what the module keeps or its hooks save, and the
    outputs be left. Not followed is what a backward recomputes, and what is traced or transformed.
    """
    try:
        if torch._C._current_graph_task_id() != -1 or _is_transformed():
            return
        ends = [tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None][:ENDS]
        for node in {*ends, *heapq.nsmallest(ENDS, _made_since(first, ends), _sequence_of)}:
            fate.handles.append(node.register_prehook(fate))
    except Exception:  # a kind of node or tensor that is not known here: the script must not notice
        fate.handles.clear()


def _is_transformed() -> bool:
    dynamo = sys.modules.get("torch._dynamo.config")
    return (
        torch._C._functorch.peek_interpreter_stack() is not None
        or torch._C._get_tracing_state() is not None
        or bool(getattr(dynamo, "compiled_autograd", False))
    )


def _made_since(first: int, ends: list[Any]) -> set[Any]:
    """Nodes behind `ends`, those that make gradients of parameters and those of earlier calls left out."""
    seen: set[Any] = set()
    pending = [node for node in ends if _sequence_of(node) >= first]
    last = max(map(_sequence_of, pending), default=0)
    while pending and len(seen) < MOST_NODES:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            following = (after for after, _ in reversed(node.next_functions) if after is not None)
            pending += [after for after in following if first <= _sequence_of(after) <= last]
    return seen


def _sequence_of(node: Any) -> int:
    return int(node._sequence_nr())


def _tensors(out: Any, depth: int = 3) -> Iterator[Any]:
    if issubclass(type(out), torch.Tensor):
        yield out
    elif depth:
        fields = attributes_of(out) if hasattr(type(out), "__dataclass_fields__") else None
        for item in elements_of(fields if fields is not None else out):
            yield from _tensors(item, depth - 1)


def _storage_bytes(tensors: list[Any], inputs: Iterator[Any]) -> int:
    """The tensors' storages, each once and in whole 512-byte blocks, without those that were passed in."""
    sizes: dict[int, int] = {}
    try:
        for tensor in tensors:
            storage = tensor.untyped_storage()
            sizes[storage._cdata] = rounded(storage.nbytes())
        for tensor in inputs:
            sizes.pop(tensor.untyped_storage()._cdata, None)
    except (NotImplementedError, RuntimeError):
        return 0
    return sum(sizes.values())
