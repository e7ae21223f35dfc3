"""Turns the path from a variable down to a tensor into words: which variable, of what, filled by which
line."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import types
from collections import deque
from typing import Any, Literal, NamedTuple

import torch

from gpulint.runtime.holding.naming import renews, storing_lines
from gpulint.runtime.probes.frames import frame_locals, function_name

Scope = Literal["local", "global", "attribute", "class attribute", "closure", "cache", "optimizer", "unknown"]
_LRU = type(functools.lru_cache(maxsize=None)(lambda: None))


class Root(NamedTuple):
    """Where a path begins: a local of a frame, a global of a module, or an object of a class, which a variable that was
    not found leads to."""

    kind: Literal["local", "global", "object"]
    name: str
    where: Any


class Hop(NamedTuple):
    """One edge of a path: `above` refers to `below`. `above` is a Root at the start."""

    above: Any
    below: Any


class Name(NamedTuple):
    """What `describe` found out; see `Holder` for the fields."""

    text: str
    variable: str
    container: str
    scope: Scope
    owner: str
    file: str
    line: int
    lines: tuple[int, ...]
    bound: int | None
    length: int | None
    renews: bool


class _State(NamedTuple):
    """The name so far while going down a path. `base` is the identifier to look for in the source."""

    variable: str
    scope: Scope
    owner: str
    file: str
    first_line: int
    base: str
    attribute: bool
    via: str = ""
    bound: int | None = None


def describe(hops: list[Hop], holding: Any) -> Name:
    """The name of `holding`, the object at the end of `hops`; the first hop starts at a `Root`."""
    state = _State("", "unknown", "", "", 0, "", False)
    skip = False
    for position, hop in enumerate(hops):
        if skip:
            skip = False
            continue
        following = hops[position + 1].below if position + 1 < len(hops) else None
        state, skip = _down(state, hop, following)
    if isinstance(holding, _LRU):
        state = _cache(state, holding)
    elif isinstance(holding, torch.optim.Optimizer):
        state = _optimizer(state, holding)
    container = _container(holding)
    bound = state.bound
    if isinstance(holding, deque) and holding.maxlen is not None:
        bound = holding.maxlen
    lines: tuple[int, ...] = ()
    if state.base and state.file:
        lines = storing_lines(state.file, state.base, state.attribute, state.first_line)
        if not lines and state.first_line:
            lines = storing_lines(state.file, state.base, state.attribute)
    variable = state.variable
    if container == "dict" and not variable.endswith("]") and state.scope != "cache":
        variable += "[...]"
    length = _length(holding)
    return Name(
        _text(state, variable, container),
        variable,
        container,
        state.scope,
        state.owner,
        state.file,
        lines[0] if lines else state.first_line,
        lines,
        bound,
        length,
        any(renews(state.file, state.base, state.attribute, line) for line in lines),
    )


def _length(holding: Any) -> int | None:
    if isinstance(holding, _LRU):
        return int(holding.cache_info().currsize)
    return len(holding) if isinstance(holding, (list, dict, set, tuple, deque)) else None


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
    elif state.scope == "global":
        text = f"global {container} `{variable}`"
    else:
        text = f"{container} `{variable}`{where.get(state.scope, '')}"
    return text + (f" ({state.via})" if state.via else "")


def _container(holding: Any) -> str:
    if isinstance(holding, torch.Tensor):
        return "tensor"
    if isinstance(holding, _LRU):
        return "lru_cache"
    if isinstance(holding, BaseException):
        return "exception"
    if isinstance(holding, (types.FunctionType, types.MethodType, types.CellType)):
        return "closure"
    if isinstance(holding, (types.GeneratorType, types.FrameType)):
        return "generator" if isinstance(holding, types.GeneratorType) else "frame"
    for kind in (list, dict, set, tuple, deque):
        if isinstance(holding, kind):
            return kind.__name__
    return type(holding).__name__ or "object"


def _file_of(thing: Any) -> str:
    module = sys.modules.get(getattr(thing, "__module__", None) or "")
    file = getattr(module, "__file__", None)
    return os.path.abspath(file) if isinstance(file, str) else ""


def _gradient(tensor: Any) -> Any:
    return tensor.grad if tensor.is_leaf else None


def _root(root: Root) -> _State:
    if root.kind == "object":
        return _State("", "unknown", root.name, _file_of(root.where), 0, "", False)
    if root.kind == "local":
        code = root.where.f_code
        owner = frame_locals(root.where).get("self") if code.co_name == "step" else None
        if isinstance(owner, torch.optim.Optimizer):  # what it will put into its state
            return _optimizer(_State("", "optimizer", "", "", 0, "", False), owner)
        return _State(
            root.name,
            "local",
            f"{function_name(code)}()",
            os.path.abspath(code.co_filename),
            code.co_firstlineno,
            root.name,
            False,
        )
    file = getattr(root.where, "__file__", None) or ""
    return _State(
        root.name, "global", root.where.__name__, os.path.abspath(file) if file else "", 0, root.name, False
    )


def _down(state: _State, hop: Hop, following: Any) -> tuple[_State, bool]:
    """The name one hop further down. The second value says that the hop after this one is already in it."""
    above, below = hop
    if isinstance(above, Root):
        return _root(above), False
    if state.scope == "optimizer":
        return state, False
    if isinstance(above, torch.Tensor):
        suffix = ".grad" if below is _gradient(above) else ""
        return state._replace(variable=f"{state.variable}{suffix}"), False
    if isinstance(above, dict):
        return _item(state, above, below), False
    if isinstance(above, (list, tuple, deque, set, frozenset)):
        return _elements(state), False
    if isinstance(above, _LRU):
        return _cache(state, above), False
    if isinstance(above, types.FunctionType):
        return _function(state, above, below), False
    if isinstance(above, types.CellType):
        return state, False
    if isinstance(above, types.FrameType):
        return _frame(state, above, below), False
    if isinstance(above, (types.TracebackType, types.MethodType, types.GeneratorType, functools.partial)):
        return state, False
    if isinstance(above, BaseException) and isinstance(below, types.TracebackType):
        return state._replace(via="the exception's traceback"), False
    if isinstance(above, type):
        return _class(state, above, below), False
    return _attribute(state, above, below, following)


def _item(state: _State, above: dict[Any, Any], below: Any) -> _State:
    key = next((key for key, value in above.items() if value is below), None)
    if state.variable == "self" and isinstance(key, str):  # a module's buffers, parameters, submodules
        return state._replace(variable=f"self.{key}", base=key, attribute=True)
    if isinstance(key, str) and len(key) <= 30 and not state.variable.endswith("[...]"):
        return state._replace(variable=f"{state.variable}[{key!r}]")
    return _elements(state)


def _elements(state: _State) -> _State:
    return state if state.variable.endswith("[...]") else state._replace(variable=f"{state.variable}[...]")


def _cache(state: _State, above: Any) -> _State:
    wrapped = inspect.unwrap(above)
    code = getattr(wrapped, "__code__", None)
    owner = f"{function_name(code)}()" if code is not None else getattr(wrapped, "__name__", "?")
    file = os.path.abspath(code.co_filename) if code is not None else ""
    first_line = code.co_firstlineno if code is not None else 0
    return _State(
        owner[:-2], "cache", owner, file, first_line, "", False, bound=above.cache_parameters()["maxsize"]
    )


def _function(state: _State, above: types.FunctionType, below: Any) -> _State:
    code = above.__code__
    file = os.path.abspath(code.co_filename)
    owner = f"{function_name(code)}()"
    for name, cell in zip(code.co_freevars, above.__closure__ or (), strict=False):
        if cell is below:
            # the variable is bound in the function around, and may be filled there or here
            lines = storing_lines(file, name, False, code.co_firstlineno)
            return _State(name, "closure", owner, file, code.co_firstlineno if lines else 0, name, False)
    defaults = above.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount][-len(defaults) :] if defaults else ()
    for name, value in [*zip(names, defaults, strict=False), *(above.__kwdefaults__ or {}).items()]:
        if value is below:
            return _State(
                name, "closure", owner, file, code.co_firstlineno, name, False, via="a default argument"
            )
    return state


def _frame(state: _State, above: types.FrameType, below: Any) -> _State:
    name = next((name for name, value in frame_locals(above).items() if value is below), None)
    if name is None:
        return state
    function = f"{function_name(above.f_code)}()"
    if not state.via:  # a generator's frame
        code = above.f_code
        return _State(
            name, "local", function, os.path.abspath(code.co_filename), code.co_firstlineno, name, False
        )
    return state._replace(via=f"{state.via}: local `{name}` of `{function}`")


def _class(state: _State, above: type, below: Any) -> _State:
    for name, value in vars(above).items():
        if value is below or getattr(value, "__func__", None) is below:
            return _State(
                f"{above.__name__}.{name}",
                "class attribute",
                above.__qualname__,
                _file_of(above),
                0,
                name,
                True,
            )
    return state


def _attribute(state: _State, above: Any, below: Any, following: Any) -> tuple[_State, bool]:
    """An instance: the hop goes to the value (inline values, slots) or to its `__dict__` and from there to
    the value."""
    namespace = getattr(above, "__dict__", None)
    skip = namespace is below and following is not None
    value = following if skip else below
    name = _key_of(namespace, value) or _slot_of(above, value)
    kind = type(above)
    if name is None:
        return state, skip
    if isinstance(above, torch.optim.Optimizer) and name == "state":
        return _optimizer(state, above), skip
    if isinstance(above, torch.nn.Module) and name in ("_buffers", "_parameters", "_modules"):
        return _State("self", "attribute", kind.__qualname__, _file_of(kind), 0, "", False), skip
    return _State(f"self.{name}", "attribute", kind.__qualname__, _file_of(kind), 0, name, True), skip


def _key_of(namespace: Any, value: Any) -> str | None:
    if not isinstance(namespace, dict):
        return None
    return next((str(key) for key, item in namespace.items() if item is value), None)


def _slot_of(above: Any, value: Any) -> str | None:
    for kind in type(above).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if getattr(above, name, None) is value:
                return str(name)
    return None


def _optimizer(state: _State, above: Any) -> _State:
    kind = type(above)
    bound = None
    if kind.__module__.startswith("torch.optim"):
        bound = int(above.param_groups[0].get("history_size", max(1, len(above.state))))
    return _State("state", "optimizer", kind.__qualname__, _file_of(kind), 0, "", False, bound=bound)
