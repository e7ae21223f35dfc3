"""A breadth-first walk from variables down to the memory, in two passes; and where it begins: the variables of running functions
and of modules, the user's first, and the instances of the user's classes.

The first goes through Python objects only and finds every tensor that a variable, container, attribute, closure, cache,
generator or kept exception can reach. The second walks the autograd graphs behind those tensors, oldest first, so that what
an old loss in a list keeps alive is the list's and not the newest loss's. Nothing of the user's runs meanwhile: see
`probes.plain`, and `undisturbed` for what torch itself would hand to a tensor's class.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import math
import sys
import traceback
import types
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import torch

from gpulint.runtime.probes import plain
from gpulint.runtime.probes.base import Block, Key, Targets
from gpulint.runtime.probes.frames import Frames, frame_locals

MOST_OBJECTS = 3_000_000

_VALUES = (str, bytes, int, float, complex, bool, type(None), type(...))
_ATOMS = (*_VALUES, types.CodeType, types.BuiltinFunctionType)
_ATOMIC = frozenset(_ATOMS)
PLAIN = frozenset({dict, OrderedDict, list, tuple, set, frozenset})  # a module has ten that are empty
# The base class's own, which a subclass cannot stand in for.
_GRAD, _GRAD_FN, _IS_LEAF = (vars(torch._C.TensorBase)[name] for name in ("grad", "grad_fn", "is_leaf"))
_SUSPENDED = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)


class Root(NamedTuple):
    """Where a path begins: a local of a frame, a global of a module, or an object of a class, which a variable that was
    not found leads to."""

    kind: Literal["local", "global", "object"]
    name: str
    where: Any


class Find(NamedTuple):
    """A block and the tensor through which it was reached; `graph` says that it hangs on the tensor's
    graph. `key` is its storage's."""

    block: Block
    tensor: Any
    graph: bool
    key: Hashable


@dataclass(slots=True)
class Walk:
    """State of one search: `parents` maps an object's id to what it was reached from."""

    targets: Targets
    key_of: Key
    old: range  # sequence numbers of autograd nodes that belong to judged steps
    parents: dict[int, Any] = field(default_factory=dict)
    kept: list[Any] = field(default_factory=list)  # keeps ids valid
    tensors: list[Any] = field(default_factory=list)
    finds: list[Find] = field(default_factory=list)
    found: dict[Hashable, Any] = field(default_factory=dict)  # and the tensor whose storage it is
    nodes: dict[int, int] = field(default_factory=dict)  # id of a tensor -> old nodes behind it
    closed: tuple[str, ...] = ("gpulint.",)  # modules whose objects are not looked into
    skipped: dict[type, bool] = field(default_factory=dict)
    first: bool = False  # whether one find is enough
    most: int = MOST_OBJECTS
    # Whether it does not go to an object (the first) from another
    cut: Callable[[Any, Any], bool] | None = None

    def close(self) -> None:
        """Let go of everything at once: what lingers here would be the next look's survivors."""
        self.cut = None
        for collection in (self.parents, self.kept, self.tensors, self.finds, self.found):
            collection.clear()


# -- through Python objects --------------------------------------------------------------------------------


def explore(walk: Walk, roots: Iterable[tuple[Any, Any]]) -> None:
    queue: deque[Any] = deque()
    for value, root in roots:
        _reach(walk, queue, value, root)
    _drain(walk, queue)


def _drain(walk: Walk, queue: deque[Any]) -> None:
    while queue and len(walk.kept) < walk.most and not (walk.first and walk.finds):
        parent = queue.popleft()
        try:
            for child in _children(parent):
                _reach(walk, queue, child, parent)
        except Exception:
            continue


def _reach(walk: Walk, queue: deque[Any], value: Any, parent: Any) -> None:
    kind = type(value)
    if kind in _ATOMIC or id(value) in walk.parents or (kind in PLAIN and not value):
        return
    skip = walk.skipped.get(kind)
    if skip is None:
        skip = walk.skipped[kind] = _is_closed(kind, walk.closed)
    if skip or (walk.cut is not None and walk.cut(value, parent)):
        return
    walk.parents[id(value)] = parent
    walk.kept.append(value)
    if issubclass(kind, torch.Tensor):
        walk.tensors.append(value)
        key = walk.key_of(value) if walk.targets else None
        if key in walk.targets and key not in walk.found:
            walk.found[key] = value
            walk.finds.append(Find(walk.targets[key], value, False, key))
    queue.append(value)


def _is_closed(kind: type, closed: tuple[str, ...]) -> bool:
    """Types not to look into: modules are roots of their own, autograd nodes come in the second pass, and the
    verifier is not the user's."""
    if is_node(kind):
        return True
    return issubclass(kind, (types.ModuleType, *_ATOMS)) or plain.module_of(kind).startswith(closed)


def is_node(kind: type) -> bool:
    """Whether it is a kind of autograd node; those of C++ have no base in common."""
    return any("next_functions" in plain.namespace_of(one) for one in plain.bases_of(kind))


def undisturbed() -> contextlib.AbstractContextManager[Any]:
    """Within it a tensor's class is not asked when an attribute of the tensor is read, nor is a mode of the user's."""
    quiet: contextlib.AbstractContextManager[Any] = torch._C.DisableTorchFunction()
    return quiet


def grad_of(tensor: Any) -> Any:
    """A leaf's gradient. Asking others would only warn, and some views refuse to tell, as in `grad_fn_of`."""
    with contextlib.suppress(RuntimeError):
        return _GRAD.__get__(tensor) if _IS_LEAF.__get__(tensor) else None
    return None


def grad_fn_of(tensor: Any) -> Any:
    """The node that made a tensor. None where torch refuses to tell: of a view that may not be differentiated any more, because
    its base was changed in place, as FSDP's flat parameters are."""
    with contextlib.suppress(RuntimeError):
        return _GRAD_FN.__get__(tensor)
    return None


def _children(parent: Any) -> Iterator[Any]:
    """What an object refers to, without a function's globals and without torch's own classes.

    Looks at `type(parent)` only: isinstance would ask proxies for their `__class__` and wake deprecated ones.
    """
    kind = type(parent)
    if issubclass(kind, dict):
        entries = plain.items_of(parent)
        yield from _inner([value for _, value in entries])
        yield from _inner([key for key, _ in entries])
        if kind not in PLAIN and (attributes := plain.attributes_of(parent)):
            yield attributes
    elif kind is types.FunctionType:
        yield from parent.__closure__ or ()
        yield from parent.__defaults__ or ()
        yield from (parent.__kwdefaults__ or {}).values()
        if parent.__dict__:
            yield parent.__dict__
    elif kind is types.FrameType:
        yield from frame_locals(parent).values()
    elif kind in _SUSPENDED:
        frames = (getattr(parent, name, None) for name in ("gi_frame", "cr_frame", "ag_frame"))
        yield from filter(None, frames)
    elif issubclass(kind, type):
        if not plain.module_of(parent).startswith(("torch", "builtins", "collections", "typing", "abc")):
            yield from list(plain.namespace_of(parent).values())
    else:
        if issubclass(kind, torch.Tensor) and (gradient := grad_of(parent)) is not None:
            yield gradient
        yield from _inner(gc.get_referents(parent))


def _inner(values: list[Any]) -> list[Any]:
    """Without what leads nowhere: a vocabulary of thousands of words is passed by at once."""
    return [value for value in values if type(value) not in _ATOMIC]


# -- through autograd graphs ----------------------------------------------------------------------------------


def reaches_old(walk: Walk) -> bool:
    """Whether a node of the judged steps is behind any of the tensors that were found."""
    nodes = [grad_fn_of(tensor) for tensor in walk.tensors]
    return any(_sequence(node) in walk.old for node in nodes_behind(nodes, set()))


def follow_graphs(walk: Walk) -> None:
    fresh = [(grad_fn_of(tensor), tensor) for tensor in walk.tensors if id(tensor) not in walk.nodes]
    rooted = [(_sequence(node), node, tensor) for node, tensor in fresh if node is not None]
    for _, node, tensor in sorted(rooted, key=lambda found: found[0]):
        walk.nodes[id(tensor)] = _graph(walk, tensor, node)
        if len(walk.found) >= len(walk.targets) and not walk.old:
            return


def _sequence(node: Any) -> int:
    number = getattr(node, "_sequence_nr", None)
    return int(number()) if number is not None else -1


def _graph(walk: Walk, tensor: Any, node: Any) -> int:
    """Visit the nodes behind a tensor, which `node` made, that no older tensor has claimed; returns how many are of judged
    steps."""
    old = 0
    stack = [node]
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
        walk.finds[position] = walk.finds[position]._replace(tensor=tensor, graph=True)
    return old


def nodes_behind(nodes: Iterable[Any], seen: set[Any], most: float = math.inf) -> Iterator[Any]:
    """These nodes of graphs and those that a backward goes to from there, each once: none that is `seen`, and no more when that
    are `most`."""
    pending = list(nodes)
    while pending and len(seen) < most:
        node = pending.pop()
        if node is not None and node not in seen:
            seen.add(node)
            pending += [following for following, _ in node.next_functions]
            yield node


def tensors_behind(nodes: Iterable[Any], seen: set[Any], most: float = math.inf) -> Iterator[torch.Tensor]:
    """The tensors that graphs keep for a backward, none unpacked, behind the same nodes."""
    for node in nodes_behind(nodes, seen, most):
        yield from (one for one in saved_by(node) if issubclass(type(one), torch.Tensor))


def saved_by(node: Any) -> Iterator[Any]:
    """What a node keeps: saved tensors as they are stored (packed, if hooks packed them), and a Python node's
    fields. No hook that would unpack one is called: it may compute a forward anew, or copy tensors back."""
    for kind in plain.bases_of(type(node)):
        for name in plain.namespace_of(kind):
            if name.startswith("_raw_saved_"):
                raw = None
                with contextlib.suppress(RuntimeError):  # freed by backward
                    raw = getattr(node, name)
                for one in raw if isinstance(raw, (tuple, list)) else (raw,):
                    yield from _unpacked(one, node, name)
    fields = plain.attributes_of(node)
    if fields:
        yield fields
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


# -- where it begins -----------------------------------------------------------------------------------------


def _on_stacks(
    wanted: Callable[[str], bool], extra: tuple[types.FrameType, ...] = ()
) -> list[types.FrameType]:
    """The frames on the stacks of all threads, and on those that `extra` are on top of, whose files are `wanted`."""
    found: list[types.FrameType] = []
    stacks = [sys._getframe(), *sys._current_frames().values(), *extra]
    for frame, _ in itertools.chain.from_iterable(map(traceback.walk_stack, stacks)):
        if frame not in found and wanted(frame.f_code.co_filename):
            found.append(frame)
    del stacks, frame  # they hold this function's own frame: a cycle, which would keep all the others
    return found


def user_roots(frames: Frames, extra: tuple[types.FrameType, ...] = ()) -> list[list[tuple[Any, Root]]]:
    """The variables of the user's, those that last longer first: of running functions, with the frames that `extra` are on top of, and
    of modules; then those of the innermost function, which may run for one step, and have at hand what others keep."""
    running = [one for one in _on_stacks(frames.is_user, extra) if one.f_code.co_name != "<module>"]
    inner, *outer = [
        [(value, Root("local", name, frame)) for name, value in frame_locals(frame).items()]
        for frame in running
    ] or [[]]
    own = map(_globals_of, user_modules(frames))
    return [[*itertools.chain.from_iterable(outer), *itertools.chain.from_iterable(own)], inner]


def user_modules(frames: Frames) -> Iterator[types.ModuleType]:
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
        if plain.is_one(module, types.ModuleType) and _is_user_module(module, frames):
            yield module


def _is_foreign(package: Any, frames: Frames) -> bool:
    """Whether it is known to be a package that is not the user's; one without a file may be anybody's."""
    file = plain.attribute(package, "__file__")
    return plain.is_one(package, types.ModuleType) and type(file) is str and not frames.is_user(file)


def _is_user_module(module: types.ModuleType, frames: Frames) -> bool:
    if plain.attribute(module, "__name__") in ("__main__", "__mp_main__"):
        return not plain.attribute(module, "_gpulint_bootstrap")
    file = plain.attribute(module, "__file__")
    return type(file) is str and frames.is_user(file)


def _globals_of(module: types.ModuleType) -> Iterator[tuple[Any, Root]]:
    for name, value in list((plain.attributes_of(module) or {}).items()):
        if not (name.startswith("__") and name.endswith("__")):
            yield value, Root("global", name, module)


def other_roots(frames: Frames) -> Iterator[tuple[Any, Root]]:
    for name, module in list(sys.modules.items()):
        ours = name.partition(".")[0] == "gpulint"
        if not ours and plain.is_one(module, types.ModuleType) and not _is_user_module(module, frames):
            yield from _globals_of(module)


def library_frames(frames: Frames) -> Iterator[tuple[Any, Root]]:
    """The locals of running functions that are not the user's: a framework's loop, say, that holds the user's objects."""
    for frame in _on_stacks(lambda file: not frames.is_user(file) and not frames.is_ours(file)):
        for name, value in frame_locals(frame).items():
            yield value, Root("local", name, frame)


def instances(frames: Frames) -> Iterator[tuple[Any, Root]]:
    """Every object of a class of the user's: what no variable leads to may still be an attribute's."""
    theirs: dict[type, bool] = {}
    for one in gc.get_objects():
        kind = type(one)
        if kind not in theirs:
            module: Any = sys.modules.get(plain.module_of(kind))
            theirs[kind] = plain.is_one(module, types.ModuleType) and _is_user_module(module, frames)
        if theirs[kind]:
            yield one, Root("object", plain.name_of(kind), kind)
