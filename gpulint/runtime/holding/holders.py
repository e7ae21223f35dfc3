"""Who keeps survivors alive: a walk from the user's variables down to the memory (`roots`, `walking`), then a name for the
path.
"""

from __future__ import annotations

import os
import statistics
import types
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

import torch

from gpulint.runtime.holding.paths import Hop, Name, Root, describe
from gpulint.runtime.holding.roots import instances, library_frames, other_roots, running_frames, user_roots
from gpulint.runtime.holding.walking import Find, Walk, explore, follow_graphs, reaches_old
from gpulint.runtime.probes.base import Block
from gpulint.runtime.probes.frames import Frames
from gpulint.runtime.record.result import Held, Holder, Site


def find(
    targets: Mapping[Hashable, Block],
    key_of: Callable[[Any], Hashable | None],
    old: range,
    frames: Frames,
    extra_frames: tuple[types.FrameType, ...] = (),
    leaking: Set[Hashable] = frozenset(),
    modules: bool = False,
) -> list[Holder]:
    """The holders of `targets` (storage key -> its block), largest first.

    `old` are the sequence numbers of autograd nodes made in the judged steps; holders of such nodes are
    reported even where they hold no target, because nodes cost host memory. `extra_frames` are frames to
    search besides the running ones. What no variable of the user's leads to is searched for in everything that there is
    where it is `leaking`: that takes a second or more. With `modules` a network is the holder of its parameters and buffers,
    with those of its submodules. Never raises for what it finds: objects that cannot be looked into are
    passed over.
    """
    walk = Walk(targets, key_of, old)
    try:
        explore(walk, user_roots(frames, running_frames(frames, extra_frames)))
        if not targets and not reaches_old(walk):
            return []  # as it is where nothing leaks: what the nodes keep need not be looked at then
        follow_graphs(walk)
        for roots in (other_roots(frames), library_frames(frames), instances(frames)):
            if not leaking <= walk.found:
                explore(walk, roots)
                follow_graphs(walk)
        lost = [block for key, block in targets.items() if key in leaking and key not in walk.found]
        return _group(walk, lost, frames, modules)
    finally:
        walk.forget()


def reached(
    roots: Iterable[Any],
    targets: Mapping[Hashable, Block],
    key_of: Callable[[Any], Hashable | None],
    closed: tuple[str, ...] = (),
) -> set[Hashable]:
    """Which of `targets` are kept alive by these objects, through autograd graphs too. Objects of classes whose modules' names
    begin as one of `closed` does are not looked into."""
    walk = Walk(targets, key_of, range(0), closed=("gpulint.", *closed))
    try:
        explore(walk, ((one, Root("object", "", None)) for one in roots))
        follow_graphs(walk)
        return set(walk.found)
    finally:
        walk.forget()


# -- from finds to holders -----------------------------------------------------------------------------------


def _path(walk: Walk, start: Any) -> list[Any]:
    """From an object up to its root, the root last."""
    path = [start]
    while True:
        above = walk.parents.get(id(path[-1]))
        if above is None:
            return path
        path.append(above)
        if isinstance(above, Root):
            return path


@dataclass(slots=True)
class _Group:
    path: list[Any]  # from the holding object up to the root
    blocks: list[Block] = field(default_factory=list)
    tensors: set[int] = field(default_factory=set)
    entries: Counter[int] = field(
        default_factory=Counter
    )  # bytes by the holder's own through which they are reached
    graph: bool = False
    network: bool = False
    nodes: int = 0


def _group(walk: Walk, lost: list[Block], frames: Frames, modules: bool) -> list[Holder]:
    epochs: dict[int, set[int]] = {}
    optimizers: dict[int, set[int]] = {}  # of which states are below an object
    paths: list[tuple[Find, list[Any]]] = []
    for one in walk.finds:
        path = _path(walk, one.tensor)
        paths.append((one, path))
        optimizer = 0
        for above in path[:-1]:
            epochs.setdefault(id(above), set()).add(one.block.epoch)
            if optimizer:
                optimizers.setdefault(id(above), set()).add(optimizer)
            elif isinstance(above, torch.optim.Optimizer):
                optimizer = id(above)
    enough = max(2, min(3, len({one.block.epoch for one in walk.finds})))
    groups: dict[tuple[int, str], _Group] = {}
    for one, path in paths:
        position = (_network(path) if modules else 0) or _holding(path, epochs, optimizers, enough)
        group = _group_for(groups, path, position, one.block.place)
        group.blocks.append(one.block)
        group.tensors.add(id(one.tensor))
        group.entries[id(path[max(0, position - 1)])] += one.block.size
        group.graph |= one.graph
        group.network |= isinstance(one.tensor, torch.nn.Parameter)
    _add_nodes(walk, groups)
    holders = _joined([(_name(group), place, group) for (_, place), group in groups.items()], frames)
    if lost:
        holders.append(_unknown(lost, frames))
    return sorted(holders, key=lambda holder: (-holder.bytes, -holder.nodes, holder.text))


def _holding(
    path: list[Any], epochs: dict[int, set[int]], optimizers: dict[int, set[int]], enough: int
) -> int:
    """Position in the path of the object that gathers memory of several steps: the list, not the dict in it
    that was made anew in each step. `enough` is 3 rather than 2, because one step's memory may lie on both
    sides of a boundary. An optimizer gathers its state, but not where there are ever more of them."""
    for position, above in enumerate(path[:-1]):
        if isinstance(above, torch.optim.Optimizer) and any(
            below is above.state for below in path[:position]
        ):
            higher = range(position + 1, len(path) - 1)
            return next((p for p in higher if len(optimizers.get(id(path[p]), ())) >= enough), position)
    for position, above in enumerate(path[:-1]):
        if len(epochs.get(id(above), ())) >= enough:
            return position
    return _nearest_container(path)


def _network(path: list[Any]) -> int:
    """Position in the path of the outermost module of which the path's beginning is a parameter, buffer or gradient; 0 where
    there is none."""
    found = 0
    for position, above in enumerate(path[:-1]):
        if isinstance(above, torch.nn.Module):
            found = position
        elif not isinstance(above, torch.Tensor) and not any(
            isinstance(module, torch.nn.Module) and _is_part(module, above)
            for module in path[position + 1 : position + 3]
        ):
            break
    return found


def _is_part(module: torch.nn.Module, one: Any) -> bool:
    """Whether it is one of the dicts that a module is made of."""
    parts = (module.__dict__, module._parameters, module._buffers, module._modules)
    return any(one is part for part in parts)


def _nearest_container(path: list[Any]) -> int:
    for position, above in enumerate(path[1:-1], start=1):
        if isinstance(above, (list, deque, dict, set)) and not _is_namespace(path, position):
            return position
    return 0


def _is_namespace(path: list[Any], position: int) -> bool:
    one, higher = path[position], path[position + 1 : position + 3]
    if any(isinstance(module, torch.nn.Module) and _is_part(module, one) for module in higher):
        return True
    return isinstance(one, dict) and getattr(higher[0], "__dict__", None) is one


def _group_for(groups: dict[tuple[int, str], _Group], path: list[Any], position: int, place: str) -> _Group:
    key = (id(path[position]), place)
    if key not in groups:
        groups[key] = _Group(path[position:])
    return groups[key]


def _add_nodes(walk: Walk, groups: dict[tuple[int, str], _Group]) -> None:
    """Count autograd nodes of judged steps per holder, making holders for those that keep nodes and no
    bytes."""
    rooted = [t for t in walk.tensors if walk.nodes.get(id(t))]
    for tensor in rooted:
        path = _path(walk, tensor)
        keys = [(id(above), place) for above in path[:-1] for place in ("device", "host")]
        known = next((groups[key] for key in keys if key in groups), None)
        if known is None:
            known = _group_for(groups, path, _nearest_container(path), "device")
        known.nodes += walk.nodes[id(tensor)]
        known.tensors.add(id(tensor))
        known.graph = True


def _name(group: _Group) -> Name:
    hops = [Hop(above, below) for above, below in zip(group.path[1:], group.path, strict=False)][::-1]
    return describe(hops, group.path[0])


def _joined(named: list[tuple[Name, str, _Group]], frames: Frames) -> list[Holder]:
    """One holder for each name: the lists of all layers of one class are filled by one line."""
    alike: dict[tuple[object, ...], tuple[Name, str, _Group]] = {}
    for name, place, group in named:
        key = (name.text, name.file, name.line, place)
        if key in alike:
            known = alike[key][2]
            known.blocks += group.blocks
            known.tensors |= group.tensors
            known.entries += group.entries
            known.graph |= group.graph
            known.network |= group.network
            known.nodes += group.nodes
        else:
            alike[key] = (name, place, group)
    return [_holder(name, group, place, frames) for name, place, group in alike.values()]


def _holder(name: Name, group: _Group, place: Any, frames: Frames) -> Holder:
    births: OrderedDict[Site, list[int]] = OrderedDict()
    for block in group.blocks:
        held = births.setdefault(frames.sites[block.site], [0, 0])
        held[0] += 1
        held[1] += block.size
    size = sum(block.size for block in group.blocks)
    where = f"{os.path.basename(name.file)}:{name.line}" if name.line else os.path.basename(name.file)
    tensors = f"{len(group.tensors)} tensor{'s' * (len(group.tensors) != 1)}"
    return Holder(
        text=", ".join(part for part in (name.text, where, tensors) if part),
        variable=name.variable,
        container=name.container,
        scope=name.scope,
        owner=name.owner,
        file=name.file,
        line=name.line,
        count=len(group.tensors),
        bytes=size,
        lines=name.lines,
        place=place,
        through_graph=group.graph,
        nodes=group.nodes,
        bound=name.bound,
        length=name.length,
        births=tuple(Held(site, count, total) for site, (count, total) in births.items()),
        entry=round(statistics.median(group.entries.values())) if len(group.entries) > 1 else 0,
        renews=name.renews,
        pins=""
        if name.scope == "optimizer"
        else "graph"
        if group.graph
        else "network"
        if group.network
        else "",
    )


def _unknown(lost: list[Block], frames: Frames) -> Holder:
    births: dict[int, list[int]] = {}
    for block in lost:
        held = births.setdefault(block.site, [0, 0])
        held[0] += 1
        held[1] += block.size
    return Holder(
        text=f"nothing that Python can reach (C++ code, or another thread), {len(lost)} blocks",
        variable="",
        container="",
        scope="unknown",
        owner="",
        file="",
        line=0,
        count=len(lost),
        bytes=sum(block.size for block in lost),
        place=lost[0].place,
        births=tuple(Held(frames.sites[site], count, size) for site, (count, size) in births.items()),
    )
