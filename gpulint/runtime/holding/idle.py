"""Who holds the memory that nobody uses: of all that is alive, what was not touched, by the largest thing that can be let go of
as a whole."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Hashable, Set
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from gpulint.runtime.holding import walking
from gpulint.runtime.holding.holders import is_namespace
from gpulint.runtime.holding.paths import born_at, describe, path_of, written
from gpulint.runtime.probes.base import Block, Key, Targets
from gpulint.runtime.probes.frames import Frames, function_name
from gpulint.runtime.probes.plain import attributes_of, is_one, live_tensors, name_of
from gpulint.runtime.record.besides import Untouched

MOST_NODES = 50_000  # of live graphs that are looked through
MOST = 8  # that are told
WEIGHED = 4  # of which it is found out what `del` would free: each takes a walk


@dataclass(slots=True)
class Idle:
    """Something that holds untouched memory and no other: its path from itself up to the root, and the storages below."""

    path: list[Any]
    entries: int = 0  # of a container that has others which are used
    blocks: dict[Hashable, Block] = field(default_factory=dict)
    parts: list[tuple[Any, int]] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        """All that hangs on it."""
        return sum(block.size for block in self.blocks.values())


def tensors_of(targets: Targets, key_of: Key) -> dict[Hashable, Any]:
    """A tensor for each of these storages that Python has one of, or that a live graph keeps. No walk to variables: it takes longer
    than all else where there are many objects."""
    found: dict[Hashable, Any] = {}
    pending = live_tensors()
    seen: set[Any] = set()
    with walking.undisturbed():
        while pending:
            tensor = pending.pop()
            if (key := key_of(tensor)) in targets:
                found.setdefault(key, tensor)
            if (gradient := walking.grad_of(tensor)) is not None and (key := key_of(gradient)) in targets:
                found.setdefault(key, gradient)
            pending += walking.tensors_behind([walking.grad_fn_of(tensor)], seen, MOST_NODES)
    return found


def idle(
    targets: Targets, unused: Set[Hashable], key_of: Key, frames: Frames, least: int
) -> list[tuple[Untouched, list[tuple[Any, int]]]]:
    """Of `targets`, all storages that are alive, those that are `unused` and that variables of the user's lead to, by what
    holds them, largest first, each with a tensor of each storage and its bytes. Less than `least` bytes are not told."""
    with walking.undisturbed(), contextlib.closing(walking.Walk(targets, key_of, range(0))) as walk:
        _walk(walk, frames)
        groups = [one for one in _together(_groups(walk, unused & walk.found.keys())) if one.bytes >= least]
        large = sorted(groups, key=lambda one: -one.bytes)[:MOST]
        told = (_told(one, key_of, frames, weighed=number < WEIGHED) for number, one in enumerate(large))
        return [(found, one.parts) for found, one in zip(told, large, strict=True)]


def _walk(walk: walking.Walk, frames: Frames) -> None:
    """From all variables of the user's."""
    walking.explore(walk, chain.from_iterable(walking.user_roots(frames)))
    walking.follow_graphs(walk)


def _groups(walk: walking.Walk, unused: Set[Hashable]) -> list[Idle]:
    paths = {key: path_of(walk.parents, tensor) for key, tensor in walk.found.items()}
    used = {key: walk.targets[key] for key in paths if key not in unused}
    busy = {id(above): True for key in used for above in paths[key][:-1]}
    found: dict[int, Idle] = {}
    for key in unused:
        path = paths[key]
        position = 0
        while position + 2 < len(path) and not _is_busy(path[position + 1], busy, used, walk.key_of):
            position += 1
        group = found.setdefault(id(path[position]), Idle(path[position:]))
        group.blocks[key] = walk.targets[key]
        group.parts.append((walk.found[key], walk.targets[key].size))
    return list(found.values())


def _together(groups: list[Idle]) -> list[Idle]:
    """Entries of one container as one."""
    found: dict[int, list[Idle]] = {}
    for one in groups:
        above = one.path[1]
        is_entry = is_one(above, list, tuple, deque, dict, set) and type(above) is not walking.Root
        joins = is_entry and not is_namespace(one.path, 1)
        found.setdefault(id(above if joins else one), []).append(one)
    return [_joined(entries) if len(entries) > 1 else entries[0] for entries in found.values()]


def _joined(entries: list[Idle]) -> Idle:
    blocks = {key: block for one in entries for key, block in one.blocks.items()}
    parts = [part for one in entries for part in one.parts]
    return Idle(entries[0].path[1:], len(entries), blocks, parts)


def _is_busy(one: Any, busy: dict[int, bool], used: Targets, key_of: Key) -> bool:
    """Whether an object leads to memory that is used; what is known of others is in `busy`."""
    if id(one) not in busy:
        with contextlib.closing(walking.Walk(used, key_of, range(0), first=True)) as walk:
            walking.explore(walk, iter([(one, walking.Root("object", "", None))]))
            busy[id(one)] = bool(walk.finds)
    return busy[id(one)]


def _told(one: Idle, key_of: Key, frames: Frames, weighed: bool) -> Untouched:
    name = describe(one.path)
    expression = written(one.path)
    where = f", {os.path.basename(name.file)}:{name.line}" if name.file and name.line else ""
    weighed = weighed and not one.entries
    others, kept = _elsewhere(one, key_of, frames) if weighed else ((), 0)
    if one.entries:
        expression = f"{expression}[...]" if expression else ""
    return Untouched(
        text=(f"`{expression}`{_owner(one.path)}" if expression else name.text) + where,
        written=expression,
        file=name.file,
        line=name.line,
        count=len(one.blocks),
        bytes=one.bytes,
        freed=one.bytes - kept if weighed else None,
        entries=one.entries,
        others=others,
        born=born_at(one.blocks.values(), frames),
    )


def _owner(path: list[Any]) -> str:
    """Whose the variable at the root is."""
    root = path[-1]
    if root.kind == "global":
        return ""
    if root.name == "self":
        return f" of `{name_of(type(path[-2]))}`"
    return f" in `{function_name(root.where.f_code)}()`"


def _elsewhere(one: Idle, key_of: Key, frames: Frames) -> tuple[tuple[str, ...], int]:
    """What else leads to the same storages, and to how many bytes of them."""
    held, above = one.path[0], one.path[1]
    owners = frozenset(map(id, (above, attributes_of(above), *_owner_of(one.path))))

    def is_it(value: Any, parent: Any) -> bool:
        """Whether this is the way by which it is held itself. A variable is another `Root` in each walk."""
        if type(parent) is walking.Root and type(above) is walking.Root:
            return value is held and parent.name == above.name and parent.where is above.where
        return value is held and id(parent) in owners

    with contextlib.closing(walking.Walk(one.blocks, key_of, range(0), cut=is_it)) as walk:
        _walk(walk, frames)
        kept = sum(one.blocks[key].size for key in walk.found)
        said: dict[str, None] = {}
        for tensor in walk.found.values():
            path = path_of(walk.parents, tensor)
            start = next((number for number, part in enumerate(path) if part is held), min(1, len(path) - 2))
            if expression := written(path[start:]):
                said[f"`{expression}`"] = None
        return tuple(said)[:2], kept


def _owner_of(path: list[Any]) -> list[Any]:
    """The object of which the path's second part is the dict: Python shows an attribute as its own, or as the dict's."""
    return [path[2]] if len(path) > 2 and attributes_of(path[2]) is path[1] else []
