"""What only Python's collector frees: which objects tie the cycle, and which edge of it to cut.

The collector is asked to show what it would have freed. Among that, cycles are strongly connected objects; the memory that hangs
on each is its cost. Of the edges of a cycle the one to cut is that which a person wrote: the variable of a closure, a local that
holds the exception whose traceback holds the frame, a bound method, an attribute that points back.
"""

from __future__ import annotations

import gc
import types
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import torch

from gpulint.runtime.holding.naming import storing_lines
from gpulint.runtime.holding.paths import PARTS, born_at, file_of, name_in, name_of_attribute
from gpulint.runtime.holding.walking import PLAIN, grad_of, is_node, undisturbed
from gpulint.runtime.probes import plain
from gpulint.runtime.probes.base import Block, Key, Targets
from gpulint.runtime.probes.frames import Frames, frame_locals, function_name, site_in
from gpulint.runtime.record.besides import Cycle

MOST_OBJECTS = 300_000  # of garbage that are looked through
MOST = 5  # cycles that are told
MOST_PASSES = 10  # of the collector


def collected(targets: Targets, key_of: Key, frames: Frames, collect: Callable[[], Any]) -> list[Cycle]:
    """Collect all garbage by `collect`, and say what tied that which memory of `targets` hung on, most first."""
    flags, before = gc.get_debug(), len(gc.garbage)
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        collect()
    finally:
        gc.set_debug(flags)
    garbage = gc.garbage[before:]
    del gc.garbage[before:]
    try:
        with undisturbed():
            return _explained(garbage, targets, key_of, frames) if len(garbage) <= MOST_OBJECTS else []
    finally:
        if garbage:
            garbage.clear()
            # what hangs on a cycle through nodes of a graph, another cycle, is found by the next pass alone
            for _ in range(MOST_PASSES):
                if not collect():
                    break


def _explained(garbage: list[Any], targets: Targets, key_of: Key, frames: Frames) -> list[Cycle]:
    held = _storages(garbage, targets, key_of)
    if not held:
        return []
    places = {id(one): number for number, one in enumerate(garbage)}
    edges = [[places[id(below)] for below in gc.get_referents(one) if id(below) in places] for one in garbage]
    claimed: set[Hashable] = set()
    found: dict[tuple[Any, ...], Cycle] = {}
    for knot in _knots(edges):
        keys = {key for number in _below(knot[0], edges, set()) for key in held.get(number, ())} - claimed
        claimed |= keys
        if keys:
            cycle = _told([garbage[number] for number in knot], [targets[key] for key in keys], frames)
            known = found.get((cycle.chain, cycle.cut))
            found[cycle.chain, cycle.cut] = _sum(known, cycle) if known is not None else cycle
    return sorted(found.values(), key=lambda cycle: -cycle.bytes)[:MOST]


def _sum(one: Cycle, other: Cycle) -> Cycle:
    return replace(
        one,
        count=one.count + other.count,
        bytes=one.bytes + other.bytes,
        born=tuple(dict.fromkeys((*one.born, *other.born)))[:3],
        times=one.times + other.times,
    )


def _storages(garbage: list[Any], targets: Targets, key_of: Key) -> dict[int, list[Hashable]]:
    """Position in the garbage -> the storages of that tensor and of its gradient."""
    held: dict[int, list[Hashable]] = {}
    for number, one in enumerate(garbage):
        if plain.is_one(one, torch.Tensor):
            keys = [key_of(tensor) for tensor in (one, grad_of(one)) if tensor is not None]
            if known := [key for key in keys if key in targets and key is not None]:
                held[number] = known
    return held


def _below(start: int, edges: list[list[int]], seen: set[int]) -> list[int]:
    """All that one leads to, itself first, without what is `seen`, which they are then."""
    found = [start]
    seen.add(start)
    for number in found:
        fresh = dict.fromkeys(below for below in edges[number] if below not in seen)
        seen.update(fresh)
        found += fresh
    return found


def _knots(edges: list[list[int]]) -> Iterator[list[int]]:
    """The strongly connected parts that are cycles, those that others lead to first (Kosaraju's algorithm)."""
    above: list[list[int]] = [[] for _ in edges]
    for number, following in enumerate(edges):
        for below in following:
            above[below].append(number)
    left: list[int] = []  # in the order in which a search upwards leaves them
    seen: set[int] = set()
    for start in range(len(edges)):
        stack = [(start, False)]
        while stack:
            number, leaves = stack.pop()
            if leaves:
                left.append(number)
            elif number not in seen:
                seen.add(number)
                stack += [(number, True), *((one, False) for one in above[number])]
    done: set[int] = set()
    for number in reversed(left):
        if number not in done:
            knot = _below(number, edges, done)
            if len(knot) > 1 or number in edges[number]:
                yield knot[::-1]  # what leads back is far from where it begins


# -- in words ------------------------------------------------------------------------------------------------


class _Edge(NamedTuple):
    """An edge that a person wrote: the lower its `rank`, the surer is it the one to cut."""

    rank: int
    above: Any
    below: Any
    text: str
    file: str = ""
    line: int = 0


class _Knot:
    """The objects of one knot. `owners` has the object whose dict one is, `functions` the function and name that a cell is of."""

    def __init__(self, objects: list[Any]) -> None:
        known = self.objects = {id(one): one for one in objects}
        # Before any attribute is looked at: Python makes an object's dict when it is asked for.
        self._below = {id(one): [b for b in gc.get_referents(one) if id(b) in known] for one in objects}
        self.owners = {id(found): one for one in objects if (found := plain.attributes_of(one)) is not None}
        made = [one for one in objects if type(one) is types.FunctionType]
        cells = ((one, zip(one.__code__.co_freevars, one.__closure__ or (), strict=False)) for one in made)
        self.functions = {id(cell): (one, name) for one, pairs in cells for name, cell in pairs}

    def below(self, one: Any) -> list[Any]:
        """Those of the knot's objects to which this one refers."""
        return self._below[id(one)]

    def way(self, start: Any, end: Any) -> list[Any]:
        """A shortest way from one to another."""
        before = {id(start): start}
        queue = deque([start])
        while queue and id(end) not in before:
            one = queue.popleft()
            for below in self.below(one):
                if id(below) not in before:
                    before[id(below)] = one
                    queue.append(below)
        way = [end]
        while way[-1] is not start:
            way.append(before[id(way[-1])])
        return way[::-1]

    def edge(self, above: Any, below: Any) -> _Edge | None:
        """An edge as a person wrote it; None where it is of Python's or torch's making."""
        kind = type(above)
        if kind is types.CellType:
            function, name = self.functions.get(id(above), (None, ""))
            if function is None:
                return None
            site = site_in(function.__code__)
            text = f"`{site.function}()` closes over `{name}`: give it a `weakref.ref` to it, or the values that it needs"
            return _Edge(1, above, below, text, site.file, site.line)
        if kind is types.FrameType:
            return _local(above, below) if plain.is_one(below, BaseException) else None
        if kind is types.MethodType:
            function = above.__func__
            if below is not above.__self__ or type(function) is not types.FunctionType:
                return None
            site = site_in(function.__code__)
            text = f"the bound method `{site.function}` holds its object: keep a `weakref.WeakMethod` of it"
            return _Edge(2, above, below, text, site.file, site.line)
        return self._attribute(above, below)

    def _attribute(self, above: Any, below: Any) -> _Edge | None:
        """An attribute of an object, by its dict or by itself."""
        owner = self.owners.get(id(above), above) if type(above) is dict else above
        kind = type(owner)
        if kind is dict or (plain.is_one(owner, torch.nn.Module) and plain.is_one(below, torch.nn.Module)):
            return None  # a module's own submodules
        name = name_of_attribute(owner, below)
        if name is None:
            return None
        if is_node(kind):
            rank, kind = 1, plain.namespace_of(kind).get("_forward_cls", kind)
            text = f"`ctx.{name}` of `{plain.name_of(kind)}` leads back to it: `ctx.save_for_backward()` does not"
        elif name in PARTS or plain.module_of(kind).partition(".")[0] == "torch":
            return None
        else:
            rank = 3
            text = f"attribute `{name}` of `{plain.name_of(kind)}` leads back: hold it by `weakref.ref`"
        file = file_of(kind)
        lines = storing_lines(file, name, True) if file else ()
        return _Edge(rank, above, below, text, file, lines[0] if lines else 0)


def _local(frame: types.FrameType, below: Any) -> _Edge | None:
    """An exception in a local of a frame, which its traceback holds."""
    name = name_in(frame_locals(frame), below)
    if name is None:
        return None
    site = site_in(frame.f_code)
    lines = storing_lines(site.file, name, False, site.line)
    text = f"`{name}` in `{site.function}()` is an exception whose traceback holds the function's frame: keep `str()` of it"
    return _Edge(0, frame, below, text, site.file, lines[0] if lines else site.line)


def _told(objects: list[Any], blocks: list[Block], frames: Frames) -> Cycle:
    knot = _Knot(objects)
    edges = (knot.edge(above, below) for above in objects for below in knot.below(above))
    written = [edge for edge in edges if edge is not None]
    cut = min(written, key=lambda edge: edge.rank, default=_Edge(9, objects[0], objects[0], ""))
    chain, size = tuple(_chain(knot.way(cut.below, cut.above))), sum(block.size for block in blocks)
    return Cycle(chain, cut.text, cut.file, cut.line, len(blocks), size, born_at(blocks, frames))


def _chain(ring: list[Any]) -> Iterator[str]:
    """The objects of a cycle in words, each with the attribute that leads to the next."""
    for position, one in enumerate(ring):
        kind = type(one)
        if kind is types.FunctionType:
            yield f"function `{function_name(one.__code__)}()`"
        elif kind is types.FrameType:
            yield f"frame of `{function_name(one.f_code)}()`"
        elif plain.is_one(one, BaseException):
            yield f"`{plain.name_of(kind)}` with its traceback"
        elif kind is types.MethodType and type(one.__func__) is types.FunctionType:
            yield f"bound method `{function_name(one.__func__.__code__)}()`"
        elif issubclass(kind, torch.Tensor) or is_node(kind):
            yield f"`{plain.name_of(kind)}`"
        elif kind not in PLAIN and plain.module_of(kind) != "builtins":
            yield f"`{plain.name_of(kind).rpartition('.')[2]}{_led(one, ring[position + 1 :])}`"


def _led(one: Any, after: list[Any]) -> str:
    """The attribute by which an object leads to what comes after it."""
    if after and after[0] is plain.attributes_of(one):
        after = after[1:]
    name = name_of_attribute(one, after[0]) if after else None
    if name in PARTS and len(after) > 1:
        name = name_in(after[0], after[1]) or name
    return f".{name}" if name is not None else ""
