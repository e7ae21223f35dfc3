"""Who keeps survivors alive: a walk from the user's variables down to the memory (`roots`, `walking`), then a name for the
path.
"""

from __future__ import annotations

import os
import types
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

import torch

from gpulint.runtime.holding.paths import Hop, Root, describe
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
    graph: bool = False
    nodes: int = 0


def _group(walk: Walk, lost: list[Block], frames: Frames, modules: bool) -> list[Holder]:
    epochs: dict[int, set[int]] = {}
    paths: list[tuple[Find, list[Any]]] = []
    for one in walk.finds:
        path = _path(walk, one.tensor)
        paths.append((one, path))
        for above in path[:-1]:
            epochs.setdefault(id(above), set()).add(one.block.epoch)
    enough = max(2, min(3, len({one.block.epoch for one in walk.finds})))
    groups: dict[tuple[int, str], _Group] = {}
    for one, path in paths:
        position = (_network(path) if modules else 0) or _holding(path, epochs, enough)
        group = _group_for(groups, path, position, one.block.place)
        group.blocks.append(one.block)
        group.tensors.add(id(one.tensor))
        group.graph |= one.graph
    _add_nodes(walk, groups)
    holders = [_holder(group, place, frames) for (_, place), group in groups.items()]
    if lost:
        holders.append(_unknown(lost, frames))
    return sorted(holders, key=lambda holder: (-holder.bytes, -holder.nodes, holder.text))


def _holding(path: list[Any], epochs: dict[int, set[int]], enough: int) -> int:
    """Position in the path of the object that gathers memory of several steps: the list, not the dict in it
    that was made anew in each step. `enough` is 3 rather than 2, because one step's memory may lie on both
    sides of a boundary."""
    for position, above in enumerate(path[:-1]):
        if isinstance(above, torch.optim.Optimizer) and any(
            below is above.state for below in path[:position]
        ):
            return position
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
    above = path[position + 1]
    return isinstance(path[position], dict) and getattr(above, "__dict__", None) is path[position]


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


def _holder(group: _Group, place: Any, frames: Frames) -> Holder:
    hops = [Hop(above, below) for above, below in zip(group.path[1:], group.path, strict=False)][::-1]
    name = describe(hops, group.path[0])
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
