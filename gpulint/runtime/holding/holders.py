"""Who keeps survivors alive: a breadth-first walk from the user's variables down to the memory, then a name
for the path.

Two passes. The first goes through Python objects only and finds every tensor that a variable, container,
attribute, closure, cache, generator or kept exception can reach. The second walks the autograd graphs behind
those tensors, oldest first, so that what an old loss in a list keeps alive is the list's and not the newest
loss's.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import types
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch

from gpulint.runtime.holding.paths import Hop, Root, describe
from gpulint.runtime.probes.base import Block
from gpulint.runtime.probes.frames import Frames, frame_locals
from gpulint.runtime.record.result import Held, Holder, Site

MOST_OBJECTS = 3_000_000

_ATOMS = (
    str,
    bytes,
    int,
    float,
    complex,
    bool,
    type(None),
    types.CodeType,
    types.BuiltinFunctionType,
    type(...),
)
_ATOMIC = frozenset(_ATOMS)
_CONTAINERS = frozenset({dict, OrderedDict, list, tuple, set, frozenset})  # a module has ten that are empty


_SUSPENDED = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)


class Find(NamedTuple):
    """A block and the tensor through which it was reached; `graph` says that it hangs on the tensor's
    graph."""

    block: Block
    tensor: Any
    graph: bool


@dataclass(slots=True)
class _Walk:
    """State of one search: `parents` maps an object's id to what it was reached from."""

    targets: Mapping[Hashable, Block]
    key_of: Callable[[Any], Hashable | None]
    old: range  # sequence numbers of autograd nodes that belong to judged steps
    parents: dict[int, Any] = field(default_factory=dict)
    kept: list[Any] = field(default_factory=list)  # keeps ids valid
    tensors: list[Any] = field(default_factory=list)
    finds: list[Find] = field(default_factory=list)
    found: set[Hashable] = field(default_factory=set)
    nodes: dict[int, int] = field(default_factory=dict)  # id of a tensor -> old nodes behind it
    closed: tuple[str, ...] = ("gpulint.",)  # modules whose objects are not looked into
    skipped: dict[type, bool] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        return len(self.found) >= len(self.targets)

    def forget(self) -> None:
        """Let go of everything at once: what lingers here would be the next look's survivors."""
        for collection in (self.parents, self.kept, self.tensors, self.finds):
            collection.clear()


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
    walk = _Walk(targets, key_of, old)
    try:
        _explore(walk, _user_roots(frames, _running_frames(frames, extra_frames)))
        if not targets and not _reaches_old(walk):
            return []  # as it is where nothing leaks: what the nodes keep need not be looked at then
        _graphs(walk)
        for roots in (_other_roots(frames), _library_frames(frames), _instances(frames)):
            if not leaking <= walk.found:
                _explore(walk, roots)
                _graphs(walk)
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
    walk = _Walk(targets, key_of, range(0), closed=("gpulint.", *closed))
    try:
        _explore(walk, ((one, Root("object", "", None)) for one in roots))
        _graphs(walk)
        return set(walk.found)
    finally:
        walk.forget()


# -- roots ---------------------------------------------------------------------------------------------------


def _running_frames(frames: Frames, extra: tuple[types.FrameType, ...]) -> list[types.FrameType]:
    found: list[types.FrameType] = []
    stacks = [sys._getframe(), *sys._current_frames().values(), *extra]
    for frame in stacks:
        current: types.FrameType | None = frame
        while current is not None:
            if current not in found and frames.is_user(current.f_code.co_filename):
                found.append(current)
            current = current.f_back
    del stacks, frame  # they hold this function's own frame: a cycle, which would keep all the others
    return found


def _user_roots(frames: Frames, running: list[types.FrameType]) -> Iterator[tuple[Any, Root]]:
    for frame in running:
        if frame.f_code.co_name != "<module>":
            for name, value in frame_locals(frame).items():
                yield value, Root("local", name, frame)
    for module in _user_modules(frames):
        yield from _globals_of(module)


def _user_modules(frames: Frames) -> Iterator[types.ModuleType]:
    """Those of the modules that are the user's. The parts of a package that is not are not either: of torch's and numpy's,
    which are most, only the names are looked at."""
    modules = dict(sys.modules)
    foreign: dict[str, bool] = {}
    for name, module in modules.items():
        package, dot, _ = name.partition(".")
        if dot:
            if package not in foreign:
                foreign[package] = _is_foreign(modules.get(package), frames)
            if foreign[package]:
                continue
        if isinstance(module, types.ModuleType) and _is_user_module(module, frames):
            yield module


def _is_foreign(package: Any, frames: Frames) -> bool:
    """Whether it is known to be a package that is not the user's; one without a file may be anybody's."""
    file = getattr(package, "__file__", None)
    return isinstance(package, types.ModuleType) and isinstance(file, str) and not frames.is_user(file)


def _is_user_module(module: types.ModuleType, frames: Frames) -> bool:
    if module.__name__ in ("__main__", "__mp_main__"):
        return not module.__dict__.get("_gpulint_bootstrap")
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and frames.is_user(file)


def _globals_of(module: types.ModuleType) -> Iterator[tuple[Any, Root]]:
    for name, value in list(module.__dict__.items()):
        if not (name.startswith("__") and name.endswith("__")):
            yield value, Root("global", name, module)


def _other_roots(frames: Frames) -> Iterator[tuple[Any, Root]]:
    for name, module in list(sys.modules.items()):
        if (
            isinstance(module, types.ModuleType)
            and not _is_user_module(module, frames)
            and name.split(".")[0] != "gpulint"
        ):
            yield from _globals_of(module)


def _library_frames(frames: Frames) -> Iterator[tuple[Any, Root]]:
    """The locals of running functions that are not the user's: a framework's loop, say, that holds the user's objects."""
    for running in sys._current_frames().values():
        frame: types.FrameType | None = running
        while frame is not None:
            if not frames.is_user(frame.f_code.co_filename) and not frames.is_ours(frame.f_code.co_filename):
                for name, value in frame_locals(frame).items():
                    yield value, Root("local", name, frame)
            frame = frame.f_back


def _instances(frames: Frames) -> Iterator[tuple[Any, Root]]:
    """Every object of a class of the user's: what no variable leads to may still be an attribute's."""
    theirs: dict[type, bool] = {}
    for one in gc.get_objects():
        kind = type(one)
        if kind not in theirs:
            module = sys.modules.get(str(getattr(kind, "__module__", "")))
            theirs[kind] = isinstance(module, types.ModuleType) and _is_user_module(module, frames)
        if theirs[kind]:
            yield one, Root("object", kind.__qualname__, kind)


# -- the walk over Python objects ----------------------------------------------------------------------------


def _explore(walk: _Walk, roots: Iterator[tuple[Any, Any]]) -> None:
    queue: deque[Any] = deque()
    for value, root in roots:
        _reach(walk, queue, value, root)
    _drain(walk, queue)


def _drain(walk: _Walk, queue: deque[Any]) -> None:
    while queue and len(walk.kept) < MOST_OBJECTS:
        parent = queue.popleft()
        try:
            for child in _children(parent):
                _reach(walk, queue, child, parent)
        except Exception:
            continue


def _reach(walk: _Walk, queue: deque[Any], value: Any, parent: Any) -> None:
    kind = type(value)
    if kind in _ATOMIC or id(value) in walk.parents or (kind in _CONTAINERS and not value):
        return
    skip = walk.skipped.get(kind)
    if skip is None:
        skip = walk.skipped[kind] = _is_closed(kind, walk.closed)
    if skip:
        return
    walk.parents[id(value)] = parent
    walk.kept.append(value)
    if issubclass(kind, torch.Tensor):
        walk.tensors.append(value)
        key = walk.key_of(value) if walk.targets else None
        if key in walk.targets and key not in walk.found:
            walk.found.add(key)
            walk.finds.append(Find(walk.targets[key], value, False))
    queue.append(value)


def _is_closed(kind: type, closed: tuple[str, ...]) -> bool:
    """Types not to look into: modules are roots of their own, autograd nodes come in the second pass, and the
    verifier is not the user's."""
    if hasattr(kind, "next_functions"):
        return True
    return issubclass(kind, (types.ModuleType, *_ATOMS)) or str(getattr(kind, "__module__", "")).startswith(
        closed
    )


def _children(parent: Any) -> Iterator[Any]:
    """What an object refers to, without a function's globals and without torch's own classes.

    Looks at `type(parent)` only: isinstance would ask proxies for their `__class__` and wake deprecated ones.
    """
    kind = type(parent)
    if issubclass(kind, dict):
        yield from _inner(list(parent.values()))
        yield from _inner(list(parent.keys()))
    elif kind is types.FunctionType:
        yield from parent.__closure__ or ()
        yield from parent.__defaults__ or ()
        yield from (parent.__kwdefaults__ or {}).values()
        if parent.__dict__:
            yield parent.__dict__
    elif kind is types.FrameType:
        yield from frame_locals(parent).values()
    elif kind in _SUSPENDED:
        frame = next(
            (f for name in ("gi_frame", "cr_frame", "ag_frame") if (f := getattr(parent, name, None))), None
        )
        if frame is not None:
            yield frame
    elif issubclass(kind, type):
        if not str(parent.__module__).startswith(("torch", "builtins", "collections", "typing", "abc")):
            yield from list(vars(parent).values())
    elif issubclass(kind, torch.Tensor):
        if parent.is_leaf and parent.grad is not None:
            yield parent.grad
        yield from gc.get_referents(parent)
    else:
        yield from _inner(gc.get_referents(parent))


def _inner(values: list[Any]) -> list[Any]:
    """Without what leads nowhere: a vocabulary of thousands of words is passed by at once."""
    return [value for value in values if type(value) not in _ATOMIC]


# -- the walk over autograd graphs ---------------------------------------------------------------------------


def _reaches_old(walk: _Walk) -> bool:
    """Whether a node of the judged steps is behind any of the tensors that were found."""
    seen: set[Any] = set()
    pending = [tensor.grad_fn for tensor in walk.tensors if tensor.grad_fn is not None]
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        if _sequence(node) in walk.old:
            return True
        pending += [following for following, _ in node.next_functions if following is not None]
    return False


def _graphs(walk: _Walk) -> None:
    rooted = [t for t in walk.tensors if t.grad_fn is not None and id(t) not in walk.nodes]
    rooted.sort(key=lambda tensor: _sequence(tensor.grad_fn))
    for tensor in rooted:
        walk.nodes[id(tensor)] = _graph(walk, tensor)
        if walk.complete and not walk.old:
            return


def _sequence(node: Any) -> int:
    number = getattr(node, "_sequence_nr", None)
    return int(number()) if number is not None else -1


def _graph(walk: _Walk, tensor: Any) -> int:
    """Visit the nodes behind a tensor that no older tensor has claimed; returns how many are of judged
    steps."""
    old = 0
    stack = [tensor.grad_fn]
    queue: deque[Any] = deque()
    first = len(walk.finds)
    while stack:
        node = stack.pop()
        if id(node) in walk.parents:
            continue
        walk.parents[id(node)] = tensor
        walk.kept.append(node)
        old += _sequence(node) in walk.old
        for saved in saved_by(node):
            _reach(walk, queue, saved, tensor)
        stack.extend(following for following, _ in node.next_functions if following is not None)
    _drain(walk, queue)
    for position in range(first, len(walk.finds)):
        walk.finds[position] = Find(walk.finds[position].block, tensor, True)
    return old


def saved_by(node: Any) -> Iterator[Any]:
    """What a node keeps: saved tensors as they are stored (packed, if hooks packed them), and a Python node's
    fields."""
    for name in dir(node):
        if name.startswith("_raw_saved_"):
            raw = None
            with contextlib.suppress(RuntimeError):  # freed by backward
                raw = getattr(node, name)
            for one in raw if isinstance(raw, (tuple, list)) else (raw,):
                yield from _unpacked(one, node, name)
    fields = getattr(node, "__dict__", None)
    if fields:
        yield fields
        with contextlib.suppress(RuntimeError):  # backward has freed them
            yield from (item for item in node.saved_tensors if item is not None)
    variable = getattr(node, "variable", None)  # of an AccumulateGrad: a leaf, with its gradient
    if variable is not None:
        yield variable
    yield from gc.get_referents(node)


def _unpacked(raw: Any, node: Any, name: str) -> Iterator[Any]:
    if raw is None:
        return
    try:
        hook = getattr(raw, "unpack_hook", None)
        if hook is not None:
            yield hook
        if hasattr(raw, "data"):
            data = raw.data
            if data is not None:
                yield data
        else:
            yield getattr(node, name.replace("_raw_saved_", "_saved_"))
    except (RuntimeError, AttributeError):  # freed by backward
        return


# -- from finds to holders -----------------------------------------------------------------------------------


def _path(walk: _Walk, start: Any) -> list[Any]:
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


def _group(walk: _Walk, lost: list[Block], frames: Frames, modules: bool) -> list[Holder]:
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


def _add_nodes(walk: _Walk, groups: dict[tuple[int, str], _Group]) -> None:
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
