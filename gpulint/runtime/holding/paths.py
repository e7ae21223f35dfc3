"""Turns the path from a variable down to a tensor into words: which variable, of what, filled by which
line."""

from __future__ import annotations

import ast
import functools
import gc
import itertools
import operator
import os
import queue
import sys
import types
from collections import deque
from collections.abc import Iterable, Mapping, Set
from typing import Any, NamedTuple

import torch

from gpulint.runtime.holding.limits import Container, limit_of
from gpulint.runtime.holding.naming import renews, storing_lines
from gpulint.runtime.holding.walking import Root, grad_of
from gpulint.runtime.probes import plain
from gpulint.runtime.probes.base import Block
from gpulint.runtime.probes.crests import by_site
from gpulint.runtime.probes.frames import Frames, frame_locals, function_name, site_in
from gpulint.runtime.probes.plain import attribute
from gpulint.runtime.record.result import Holder, Scope

_LRU: Any = type(functools.lru_cache(maxsize=None)(lambda: None))
_MAXLEN: Any = vars(deque)["maxlen"]
_WRITTEN = frozenset({str, int, bool, float, type(None)})  # kinds of keys that an expression can have
_UNNAMED = (types.CellType, types.TracebackType, types.MethodType, types.GeneratorType, functools.partial)
SLACK = 8  # one entry in so many may be there beside a limit, until it is cut
PARTS = ("_parameters", "_buffers", "_modules")  # dicts of a module, whose keys are its attributes


class _State(NamedTuple):
    """The name so far while going down a path. `base` is the identifier to look for in the source. `part` says that what comes
    is a dict whose keys are attributes of the module just named."""

    variable: str = ""
    scope: Scope = "unknown"
    owner: str = ""
    file: str = ""
    first_line: int = 0
    base: str = ""
    attribute: bool = False
    via: str = ""
    bound: int | None = None
    part: bool = False

    @classmethod
    def of_code(cls, code: types.CodeType, name: str, scope: Scope, via: str = "") -> _State:
        """A variable of a function."""
        site = site_in(code)
        return cls(name, scope, f"{site.function}()", site.file, site.line, name, via=via)


def describe(path: list[Any], sizes: Set[int] = frozenset()) -> Holder:
    """The object at the beginning of a path, which ends at a `Root`, as a holder of which it is not known yet what it holds. `sizes` are
    those of what networks were given."""
    holding, chain = path[0], path[::-1]
    state, skip = _State(), False
    for position, (above, below) in enumerate(itertools.pairwise(chain)):
        if skip:
            skip = False
            continue
        following = chain[position + 2] if position + 2 < len(chain) else None
        state, skip = _down(state, above, below, following)
    if type(holding) is _LRU:
        state = _cache(holding)
    elif plain.is_one(holding, torch.optim.Optimizer):
        state = _optimizer(holding)
    container = _container(type(holding))
    bound = state.bound
    if plain.is_one(holding, deque) and _MAXLEN.__get__(holding) is not None:
        bound = _MAXLEN.__get__(holding)
    elif plain.is_one(holding, list) and list.__len__(holding) and list.__getitem__(holding, -1) is None:
        bound = list.__len__(holding)  # slots that are filled one after the other, and then anew
    starts = (state.first_line, 0) if state.base and state.file else ()
    stored = (storing_lines(state.file, state.base, state.attribute, start) for start in starts)
    lines = next(filter(None, stored), ())
    length = int(_LRU.cache_info(holding).currsize) if type(holding) is _LRU else plain.length_of(holding)
    if plain.is_one(holding, torch.Tensor):
        length = next(iter(torch.Tensor.size(holding)), None)
    limit = ""
    if queues := [one for one in path[1:3] if plain.is_one(one, queue.Queue)]:
        bound = attribute(queues[0], "maxsize") or None
    if bound is None and type(holding) is not _LRU:
        bound, limit = _limit(state, path, container, length)
    if bound is None and not limit and _goes_by(holding, sizes):
        limit = "grows with the size of the networks' input, which is the largest so far"
    variable = state.variable
    if container == "dict" and not variable.endswith("]") and state.scope != "cache":
        variable += "[...]"
    name = _text(state, variable, container), variable, container, state.scope, state.owner, state.file
    line = lines[0] if lines else state.first_line
    renewed = bool(lines) and renews(state.file, state.base, state.attribute, lines)
    return Holder(*name, line, 0, 0, lines, bound=bound, length=length, renews=renewed, limit=limit)


def _limit(state: _State, path: list[Any], container: str, length: int | None) -> tuple[int | None, str]:
    """The most entries that the script's code lets a container have, as far as it can be told, and in words which line does; where it has
    more, that does nothing."""
    holding, file, first_line = path[0], state.file, state.first_line
    nested = state.variable.endswith("]")
    sought = Container(state.base, state.attribute, nested, container == "dict", state.owner)
    objects = [one for one in path[:-1] if plain.attributes_of(one) is not None]
    own = plain.is_one(holding, dict, list, deque, set)
    if own and plain.module_of(type(holding)) not in ("builtins", "collections"):
        file, first_line = file_of(type(holding)), 0
        sought = Container("self", False, False, plain.is_one(holding, dict), plain.name_of(type(holding)))
    found = limit_of(file, sought, first_line) if file and sought.name else None
    if found is None:
        return None, ""
    root = path[-1].where
    local = frame_locals(root) if type(root) is types.FrameType else {}
    beside = [one for one in map(plain.attributes_of, local.values()) if one is not None]
    modules = [one for one in list(sys.modules.values()) if attribute(one, "__file__") == file]
    known = [*filter(None, map(plain.attributes_of, (*objects, *modules))), local, *beside]
    classes = [plain.namespace_of(kind) for one in objects for kind in plain.bases_of(type(one))]
    most = found.value(lambda name: next((one[name] for one in (*known, *classes) if name in one), None))
    text = ast.unparse(found.most)
    if most is not None and length is not None and length > most + 1 + most // SLACK:
        return None, ""
    said = "" if most is None or text == str(most) else f", {most}"
    does = "makes smaller at" if type(found.most) is ast.Compare else "holds to"
    return most, f"{os.path.basename(file)}:{found.line} {does} `{text}`{said}"


def _goes_by(holding: Any, sizes: Set[int]) -> bool:
    """Whether it is as large as the networks' input: a tensor of that size, or a dict or cache with an entry for each, in the order of
    their sizes."""
    if not sizes:
        return False
    if plain.is_one(holding, torch.Tensor):
        return set(torch.Tensor.size(holding)) <= sizes
    inner = gc.get_referents(holding) if type(holding) is _LRU else [holding]
    entries = next((plain.items_of(one) for one in inner if plain.is_one(one, dict)), [])
    parted = (key if type(key) is tuple else [key] for key, _ in entries)
    keys = [[part for part in plain.elements_of(key) if type(part) is int] for key in parted]
    in_order = all(len(a) == len(b) and all(map(operator.le, a, b)) for a, b in itertools.pairwise(keys))
    # What all keys have in common, as a number of heads, is no size
    differing = [part for part in map(set, zip(*keys, strict=False)) if len(part) > 1]
    return in_order and bool(differing) and all(part <= sizes for part in differing)


def path_of(parents: Mapping[int, Any], start: Any) -> list[Any]:
    """From an object that a walk has reached up to its root, the root last."""
    path = [start]
    while (above := parents.get(id(path[-1]))) is not None:
        path.append(above)
        if type(above) is Root:
            break
    return path


def born_at(blocks: Iterable[Block], frames: Frames) -> tuple[str, ...]:
    """The lines at which blocks were born, those of most bytes first, three at most: `train.py:24`."""
    sizes = by_site((block.size, block.site) for block in blocks)
    sites = [frames.sites[site] for site in sorted(sizes, key=lambda site: -sizes[site]) if site]
    return tuple(f"{os.path.basename(site.file)}:{site.line}" for site in sites[:3])


def written(path: list[Any]) -> str:
    """The Python expression for the object at the beginning of a path that ends at its root: `net.fc1.weight.grad`,
    `checkpoint['model']`. Empty where there is none, as for what a closure holds."""
    root, chain = path[-1], path[-2::-1]
    if root.kind == "object":
        return ""
    text, position = str(root.name), 0
    while position < len(chain) - 1:
        step, position = _step(chain, position)
        if not step:
            return ""
        text += step
    return text


def _step(chain: list[Any], position: int) -> tuple[str, int]:
    """What an expression adds to go down from the object at a position, and the position that it gets to. Nobody writes the dict
    of an object, nor those of a module's parts."""
    above, below, following = chain[position], chain[position + 1], position + 1
    if plain.is_one(above, torch.Tensor):
        return ".grad" if below is grad_of(above) else "", following
    attributes = plain.attributes_of(above)
    if attributes is not None:
        if below is attributes and following + 1 < len(chain):
            following += 1
            below = chain[following]
        name = name_in(attributes, below)
        if name in PARTS and plain.is_one(above, torch.nn.Module) and following + 1 < len(chain):
            key = name_in(below, chain[following + 1]) or ""
            return (f"[{key}]" if key.isdecimal() else f".{key}"), following + 1
        if name is not None:
            return f".{name}", following
    if plain.is_one(above, dict):
        keys = [key for key, item in plain.items_of(above) if item is below]
        return f"[{keys[0]!r}]" if keys and type(keys[0]) in _WRITTEN else "", following
    if plain.is_one(above, list, tuple, deque):
        places = [number for number, item in enumerate(plain.elements_of(above)) if item is below]
        return f"[{places[0]}]" if places else "", following
    name = name_of_attribute(above, below)
    return f".{name}" if name is not None else "", following


def _text(state: _State, variable: str, container: str) -> str:
    where = {
        "local": f" in `{state.owner}`",
        "attribute": f" of `{state.owner}`",
        "class attribute": f" of class `{state.owner}`",
        "closure": f" in the closure of `{state.owner}`",
    }
    if state.scope == "cache":
        text = f"lru_cache of `{state.owner}`"
    elif state.scope == "optimizer":
        text = f"state of optimizer `{state.owner}`"
    elif state.scope == "global" and "." not in variable.replace("[...]", ""):
        text = f"global {container} `{variable}`"
    else:
        text = f"{container} `{variable}`{where.get(state.scope, '')}"
    return text + (f" ({state.via})" if state.via else "")


_CONTAINERS: tuple[tuple[Any, str], ...] = (
    (torch.Tensor, "tensor"),
    (_LRU, "lru_cache"),
    (BaseException, "exception"),
    ((types.FunctionType, types.MethodType, types.CellType), "closure"),
    (types.GeneratorType, "generator"),
    (types.FrameType, "frame"),
    *((kind, kind.__name__) for kind in (list, dict, set, tuple, deque)),
)


def _container(kind: type) -> str:
    known = (name for kinds, name in _CONTAINERS if issubclass(kind, kinds))
    return next(known, plain.name_of(kind).rpartition(".")[2] or "object")


def file_of(kind: type) -> str:
    """Where a class's module lies; empty where that is not known."""
    file = attribute(sys.modules.get(plain.module_of(kind)), "__file__")
    return os.path.abspath(file) if type(file) is str else ""


def _root(root: Root) -> _State:
    if root.kind == "object":
        return _State(owner=root.name, file=file_of(root.where))
    if root.kind == "local":
        code = root.where.f_code
        owner = frame_locals(root.where).get("self") if code.co_name == "step" else None
        if plain.is_one(owner, torch.optim.Optimizer):  # what it will put into its state
            return _optimizer(owner)
        return _State.of_code(code, root.name, "local")
    name, file = (str(attribute(root.where, one, "") or "") for one in ("__name__", "__file__"))
    return _State(root.name, "global", name, os.path.abspath(file) if file else "", base=root.name)


def _down(state: _State, above: Any, below: Any, following: Any) -> tuple[_State, bool]:
    """The name one hop further down. The second value says that the hop after this one is already in it."""
    if isinstance(above, Root):
        return _root(above), False
    if state.scope == "optimizer":
        return state, False
    kind = type(above)
    if issubclass(kind, torch.Tensor):
        suffix = ".grad" if below is grad_of(above) else ""
        return state._replace(variable=f"{state.variable}{suffix}"), False
    if issubclass(kind, dict):
        return _item(state, above, below), False
    if issubclass(kind, (list, tuple, deque, set, frozenset)):
        return _elements(state), False
    if kind is _LRU:
        return _cache(above), False
    if kind is types.FunctionType:
        return _function(state, above, below), False
    if kind is types.FrameType:
        return _frame(state, above, below), False
    if issubclass(kind, _UNNAMED):
        return state, False
    if issubclass(kind, BaseException) and type(below) is types.TracebackType:
        return state._replace(via="the exception's traceback"), False
    if issubclass(kind, type):
        return _class(state, above, below), False
    return _attribute(state, above, below, following)


def _item(state: _State, above: dict[Any, Any], below: Any) -> _State:
    key = name_in(above, below)
    if state.part and key is not None:
        if state.variable == "self":  # a class of the user's, whose lines say `self.key`
            return state._replace(variable=f"self.{key}", base=key, attribute=True, part=False)
        step = f"[{key}]" if key.isdecimal() else f".{key}"
        return state._replace(variable=f"{state.variable}{step}", part=False)
    if key is not None and len(key) <= 30 and not state.variable.endswith("[...]"):
        return state._replace(variable=f"{state.variable}[{key!r}]")
    return _elements(state)


def _elements(state: _State) -> _State:
    return state if state.variable.endswith("[...]") else state._replace(variable=f"{state.variable}[...]")


def _cache(above: Any) -> _State:
    wrapped, bound = above, _LRU.cache_info(above).maxsize
    while (inner := attribute(wrapped, "__wrapped__")) is not None:
        wrapped = inner
    if type(wrapped) is not types.FunctionType:
        return _State("?", "cache", "?", bound=bound)
    site = site_in(wrapped.__code__)
    return _State(site.function, "cache", f"{site.function}()", site.file, site.line, bound=bound)


def _function(state: _State, above: types.FunctionType, below: Any) -> _State:
    code = above.__code__
    for name, cell in zip(code.co_freevars, above.__closure__ or (), strict=False):
        if cell is below:
            # the variable is bound in the function around, and may be filled there or here
            found = _State.of_code(code, name, "closure")
            lines = storing_lines(found.file, name, False, found.first_line)
            return found if lines else found._replace(first_line=0)
    defaults = above.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount][-len(defaults) :] if defaults else ()
    for name, value in [*zip(names, defaults, strict=False), *(above.__kwdefaults__ or {}).items()]:
        if value is below:
            return _State.of_code(code, name, "closure", via="a default argument")
    return state


def _frame(state: _State, above: types.FrameType, below: Any) -> _State:
    name = name_in(frame_locals(above), below)
    if name is None:
        return state
    if not state.via:  # a generator's frame
        return _State.of_code(above.f_code, name, "local")
    return state._replace(via=f"{state.via}: local `{name}` of `{function_name(above.f_code)}()`")


def _class(state: _State, above: type, below: Any) -> _State:
    for name, value in plain.namespace_of(above).items():
        method = value.__func__ if type(value) in (staticmethod, classmethod) else None
        if value is below or method is below:
            variable = f"{plain.name_of(above).rpartition('.')[2]}.{name}"
            return _State(variable, "class attribute", plain.name_of(above), file_of(above), 0, name, True)
    return state


def _attribute(state: _State, above: Any, below: Any, following: Any) -> tuple[_State, bool]:
    """An instance: the hop goes to the value (inline values, slots) or to its `__dict__` and from there to
    the value."""
    namespace = plain.attributes_of(above)
    skip = namespace is below and following is not None
    value = following if skip else below
    name, kind = name_of_attribute(above, value), type(above)
    if name is None:
        return state, skip
    if issubclass(kind, torch.optim.Optimizer) and name == "state":
        return _optimizer(above), skip
    if issubclass(kind, torch.nn.Module) and name in PARTS:
        if state.variable and (name == "_modules" or plain.module_of(kind).partition(".")[0] == "torch"):
            return state._replace(part=True), skip
        return _State("self", "attribute", plain.name_of(kind), file_of(kind), part=True), skip
    return _State(f"self.{name}", "attribute", plain.name_of(kind), file_of(kind), 0, name, True), skip


def name_in(namespace: dict[Any, Any], value: Any) -> str | None:
    """Under which name a value stands in a dict."""
    return next((key for key, item in plain.items_of(namespace) if item is value and type(key) is str), None)


def name_of_attribute(owner: Any, value: Any) -> str | None:
    """Under which attribute an object holds a value, in its dict or in a slot."""
    name = name_in(plain.attributes_of(owner) or {}, value)
    return name or next((slot for slot, held in plain.slots_of(owner) if held is value), None)


def _optimizer(above: Any) -> _State:
    kind = type(above)
    bound = None
    if plain.module_of(kind).startswith("torch.optim"):
        bound = above.param_groups[0].get("history_size")
    return _State("state", "optimizer", plain.name_of(kind), file_of(kind), bound=bound)
