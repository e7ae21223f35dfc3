"""Who keeps survivors alive: a walk from the user's variables down to the memory (`walking`), then a name for the
path.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import statistics
import types
from collections import Counter, deque
from collections.abc import Hashable, Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import torch

from gpulint.runtime.holding import walking
from gpulint.runtime.holding.paths import PARTS, describe, path_of
from gpulint.runtime.holding.walking import PLAIN, Walk
from gpulint.runtime.probes.base import Block, Key, Targets
from gpulint.runtime.probes.frames import Frames
from gpulint.runtime.probes.plain import attribute, attributes_of, is_one, items_of, name_of
from gpulint.runtime.record.drift import FEWEST, rounded
from gpulint.runtime.record.result import Held, Holder, Place
from gpulint.units import format_bytes, plural

_PLACES: tuple[Place, ...] = get_args(Place)
OTHERS = 0.5  # of what a holder with a limit holds: where others hold so much of it, the limit says nothing
# Of the entries: as many are younger than others that were put in after them, where keys come again
REFILLED = 1 / 8
SLICE = 0.5  # of a storage: a tensor that shows no more is a slice that keeps the rest


def find(
    targets: Targets,
    key_of: Key,
    old: range,
    frames: Frames,
    extra_frames: tuple[types.FrameType, ...] = (),
    leaking: Set[Hashable] = frozenset(),
    modules: bool = False,
    sizes: Set[int] = frozenset(),
    several: int = 3,
) -> list[Holder]:
    """The holders of `targets` (storage key -> its block), largest first.

    `old` are the sequence numbers of autograd nodes made in the judged steps; holders of such nodes are
    reported even where they hold no target, because nodes cost host memory. `extra_frames` are frames to
    search besides the running ones. What no variable of the user's leads to is searched for in everything that there is
    where it is `leaking`: that takes a second or more. With `modules` a network is the holder of its parameters and buffers,
    with those of its submodules. `sizes` are those of what networks were given. What holds memory of
    `several` epochs gathers it. Never raises for what it finds: objects that cannot be looked into are
    passed over.
    """
    roots = (walking.other_roots, walking.library_frames, walking.instances)
    walk = Walk(targets, key_of, old)
    with walking.undisturbed(), contextlib.closing(walk):
        for variables in walking.user_roots(frames, extra_frames):
            walking.explore(walk, variables)
        if not targets and not walking.reaches_old(walk):
            return []  # as it is where nothing leaks: what the nodes keep need not be looked at then
        walking.follow_graphs(walk)
        for others in roots:
            if not leaking <= walk.found.keys():
                walking.explore(walk, others(frames))
                walking.follow_graphs(walk)
        lost = [block for key, block in targets.items() if key in leaking and key not in walk.found]
        groups = _group(walk, modules, sizes, several)
        _hold_others_too(walk, groups, walking.user_roots(frames, extra_frames))
        shown = _shown_of(walk, {key for group in groups for key in group.slices})
        found = [_holder(group, frames, shown) for group in groups]
        found += [_unknown(lost, frames)] if lost else []
        return sorted(found, key=lambda holder: (-holder.bytes, -holder.nodes, holder.text))


def _hold_others_too(
    walk: Walk, groups: Iterable[_Group], variables: list[list[tuple[Any, walking.Root]]]
) -> None:
    """A limit of one holder says nothing where others, without it, hold what it holds."""
    limited = [group for group in groups if group.name.limit]
    held = {key: block for group in limited for key, block in group.held.items()}
    if not held:
        return
    barred = frozenset(itertools.chain.from_iterable(group.objects for group in limited))
    again = Walk(held, walk.key_of, range(0), cut=lambda value, _: id(value) in barred)
    with contextlib.closing(again):
        walking.explore(again, itertools.chain.from_iterable(variables))
        walking.follow_graphs(again)
        for group in limited:
            if len(again.found.keys() & group.held.keys()) >= OTHERS * len(group.held):
                group.name = replace(group.name, limit="", bound=None)


def reached(
    roots: Iterable[Any], targets: Targets, key_of: Key, closed: tuple[str, ...] = ()
) -> set[Hashable]:
    """Which of `targets` are kept alive by these objects, through autograd graphs too. Objects of classes whose modules' names
    begin as one of `closed` does are not looked into."""
    walk = Walk(targets, key_of, range(0), closed=("gpulint.", *closed))
    with walking.undisturbed(), contextlib.closing(walk):
        walking.explore(walk, ((one, walking.Root("object", "", None)) for one in roots))
        walking.follow_graphs(walk)
        return set(walk.found)


# -- from finds to holders -----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Group:
    """What objects of one name keep in one place: the lists of all layers of one class are filled by one line."""

    name: Holder
    place: Place
    tensors: set[int] = field(default_factory=set)
    # Bytes by the holder's own through which they are reached
    entries: Counter[int] = field(default_factory=Counter)
    graph: bool = False
    network: bool = False
    nodes: int = 0
    errors: set[str] = field(default_factory=set)  # exceptions through whose tracebacks some are held
    # Storages of which a tensor shows a part, and their bytes
    slices: dict[Hashable, int] = field(default_factory=dict)
    held: dict[Hashable, Block] = field(default_factory=dict)
    objects: dict[int, Any] = field(default_factory=dict)  # by id, that hold them
    # By entry and birth site, blocks that are attributes of the entry itself; and all others
    direct: Counter[tuple[int, int]] = field(default_factory=Counter)
    deeper: int = 0
    # By entry, the epoch of the latest that is in plain containers
    made: dict[int, int] = field(default_factory=dict)

    def add(self, one: walking.Find, above: list[Any]) -> None:
        """A block, and the objects between its tensor and what holds the group."""
        self.held[one.key] = one.block
        self.objects[id(above[-1])] = above[-1]
        self.tensors.add(id(one.tensor))
        entry = above[max(0, len(above) - 2)]
        self.entries[id(entry)] += one.block.size
        attributes = attributes_of(entry) if len(above) > 2 and not one.graph else None
        if attributes is not None and (len(above) == 3 or (len(above) == 4 and above[1] is attributes)):
            self.direct[id(entry), one.block.site] += 1
        else:
            self.deeper += 1
        if all(type(part) in PLAIN for part in above[1:-1]):
            self.made[id(entry)] = max(one.block.epoch, self.made.get(id(entry), 0))
        self.graph |= one.graph
        self.network |= is_one(one.tensor, torch.nn.Parameter)
        pairs = [pair for pair in itertools.pairwise(above) if type(pair[0]) is types.TracebackType]
        self.errors.update(name_of(type(error)) for _, error in pairs if is_one(error, BaseException))
        # What a copy of what the tensor shows would take of the allocator
        if not one.graph and rounded(_shown(one.tensor)) <= SLICE * one.block.size:
            self.slices[one.key] = one.block.size

    @property
    def bytes(self) -> int:
        """All that they keep."""
        return sum(block.size for block in self.held.values())

    @property
    def slots(self) -> bool:
        """Whether each of its entries keeps one of each kind, as an attribute, and none gathers any."""
        holds = all(is_one(one, list, tuple, dict) for one in self.objects.values())
        return holds and len(self.objects) == 1 and not self.deeper and set(self.direct.values()) == {1}

    @property
    def refilled(self) -> bool:
        """Whether keys come again, whose values are new then: entries are younger than others that were put in after them."""
        (holding,) = self.objects.values() if len(self.objects) == 1 else (None,)
        if type(holding) is not dict:
            return False
        made = [self.made[id(value)] for _, value in items_of(holding) if id(value) in self.made]
        later = list(itertools.accumulate(reversed(made), min))[::-1]
        younger = sum(own > least for own, least in zip(made, later, strict=True))
        return younger >= max(FEWEST, REFILLED * len(made))

    def remark(self, shown: Mapping[Hashable, int]) -> str:
        """What else is to be known of how it holds them; empty where nothing is. `shown` is how much of each storage tensors
        show."""
        if self.errors:
            said = " and ".join(f"`{name}`" for name in sorted(self.errors))
            return f"through the traceback of {said}, which holds the frames of its functions: `str(error)` holds none"
        sliced = sum(self.slices.values())
        seen = sum(shown.get(key, 0) for key in self.slices)
        if sliced > SLICE * self.bytes and 0 < seen <= SLICE * sliced:
            whole = f"the {format_bytes(sliced)} that they are cut from"
            return f"slices of {format_bytes(seen)} in all that keep {whole}: `.clone()` would keep the slices alone"
        return ""


def _shown(tensor: Any) -> int:
    """Bytes that a tensor shows of its storage."""
    return int(torch.Tensor.numel(tensor) * torch.Tensor.element_size(tensor))


def _shown_of(walk: Walk, keys: Set[Hashable]) -> dict[Hashable, int]:
    """How much of each of these storages all tensors that were found show, parts that several show counted for each."""
    shown: dict[Hashable, int] = {}
    for tensor in walk.tensors if keys else ():
        key = walk.key_of(tensor)
        if key in keys:
            shown[key] = shown.get(key, 0) + _shown(tensor)
    return shown


class _Groups:
    """By what holds them, and by its name."""

    def __init__(self, sizes: Set[int]) -> None:
        self._sizes = sizes
        self.by_object: dict[tuple[int, Place], _Group] = {}
        self.by_name: dict[tuple[object, ...], _Group] = {}

    def of(self, path: list[Any], position: int, place: Place) -> _Group:
        """That of the object at this position of a path."""
        key = (id(path[position]), place)
        if key not in self.by_object:
            name = describe(path[position:], self._sizes)
            alike = (name.text, name.file, name.line, place)
            self.by_object[key] = self.by_name.setdefault(alike, _Group(name, place))
        return self.by_object[key]


_Sets = dict[int, set[int]]  # by ids of objects


def _group(walk: Walk, modules: bool, sizes: Set[int], several: int) -> list[_Group]:
    epochs: _Sets = {}
    optimizers: _Sets = {}  # of which states are below an object
    paths: list[tuple[walking.Find, list[Any]]] = []
    for one in walk.finds:
        path = path_of(walk.parents, one.tensor)
        paths.append((one, path))
        optimizer = 0
        for above in path[:-1]:
            epochs.setdefault(id(above), set()).add(one.block.epoch)
            if optimizer:
                optimizers.setdefault(id(above), set()).add(optimizer)
            elif is_one(above, torch.optim.Optimizer):
                optimizer = id(above)
    enough = max(2, min(several, len({one.block.epoch for one in walk.finds})))
    groups = _Groups(sizes)
    for one, path in paths:
        position = (_network(path) if modules else 0) or _holding(path, epochs, optimizers, enough)
        groups.of(path, position, one.block.place).add(one, path[: position + 1])
    _add_nodes(walk, groups)
    return list(groups.by_name.values())


def _holding(path: list[Any], epochs: _Sets, optimizers: _Sets, enough: int) -> int:
    """Position in the path of the object that gathers memory of several steps: the list, not the dict in it
    that was made anew in each step, nor the tuple with what two steps have made. `enough` is 3 rather than 2 for steps, because one's
    memory may lie on both sides of a boundary. An optimizer gathers its state, but not where there are ever more of them."""
    for position, above in enumerate(path[:-1]):
        if is_one(above, torch.optim.Optimizer):
            state = attribute(above, "state")
            if any(below is state for below in path[:position]):
                higher = range(position + 1, len(path) - 1)
                return next((p for p in higher if len(optimizers.get(id(path[p]), ())) >= enough), position)
    for position, above in enumerate(path[:-1]):
        gathered = len(epochs.get(id(above), ()))
        if gathered >= enough and not is_namespace(path, position):
            around = _nearest_container(path[position:]) if is_one(above, tuple) else 0
            return position + (around if len(epochs[id(path[position + around])]) > gathered else 0)
    return _nearest_container(path)


def _network(path: list[Any]) -> int:
    """Position in the path of the outermost module of which the path's beginning is a parameter, buffer or gradient; 0 where
    there is none."""
    found = 0
    for position, above in enumerate(path[:-1]):
        if is_one(above, torch.nn.Module):
            found = position
        elif not is_one(above, torch.Tensor) and not is_namespace(path, position):
            break
    return found


def is_namespace(path: list[Any], position: int) -> bool:
    """Whether it is the dict of an object, or one of those that a module is made of: no container to a person's mind."""
    one = path[position]
    if not is_one(one, dict):
        return False
    for above in path[position + 1 : position + 3]:
        attributes = attributes_of(above)
        if attributes is not None:
            parts = map(attributes.get, PARTS) if is_one(above, torch.nn.Module) else ()
            return attributes is one or any(one is part for part in parts)
    return False


def _nearest_container(path: list[Any]) -> int:
    for position, above in enumerate(path[1:-1], start=1):
        if is_one(above, list, deque, dict, set) and not is_namespace(path, position):
            return position
    return 0


def _add_nodes(walk: Walk, groups: _Groups) -> None:
    """Count autograd nodes of judged steps per holder, making holders for those that keep nodes and no
    bytes."""
    rooted = [t for t in walk.tensors if walk.nodes.get(id(t))]
    for tensor in rooted:
        path = path_of(walk.parents, tensor)
        found = (groups.by_object.get((id(above), place)) for above in path[:-1] for place in _PLACES)
        known = next(filter(None, found), None) or groups.of(path, _nearest_container(path), "device")
        known.nodes += walk.nodes[id(tensor)]
        known.tensors.add(id(tensor))
        known.graph = True


def _holder(group: _Group, frames: Frames, shown: Mapping[Hashable, int]) -> Holder:
    name = group.name
    where = f"{os.path.basename(name.file)}:{name.line}" if name.line else os.path.basename(name.file)
    parts = (name.text, where, plural(len(group.tensors), "tensor"), group.remark(shown))
    text = ", ".join(filter(None, parts))
    pins: Any = "graph" if group.graph else "network" if group.network else ""
    return replace(
        name,
        text=text,
        count=len(group.tensors),
        bytes=group.bytes,
        place=group.place,
        through_graph=group.graph,
        nodes=group.nodes,
        births=_births(group.held.values(), frames),
        entry=round(statistics.median(group.entries.values())) if len(group.entries) > 1 else 0,
        pins="" if name.scope == "optimizer" else pins,
        slots=group.slots,
        refilled=group.refilled,
    )


def _births(blocks: Iterable[Block], frames: Frames) -> tuple[Held, ...]:
    by_site: dict[int, list[Block]] = {}
    for block in blocks:
        by_site.setdefault(block.site, []).append(block)
    return tuple(
        Held(frames.sites[site], len(own), sum(b.size for b in own), len({b.epoch for b in own}))
        for site, own in by_site.items()
    )


def _unknown(lost: list[Block], frames: Frames) -> Holder:
    text = f"nothing that Python can reach (C++ code, or another thread), {len(lost)} blocks"
    size, births = sum(block.size for block in lost), _births(lost, frames)
    return Holder(text, "", "", "unknown", "", "", 0, len(lost), size, place=lost[0].place, births=births)
