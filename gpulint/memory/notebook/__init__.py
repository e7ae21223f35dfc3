"""Which places of a notebook hold which tensor memory: its variables, what IPython keeps of results, and the last error."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType, ModuleType
from typing import Any

from gpulint.memory.errors import chain_of, frames_of, stored_errors
from gpulint.memory.live import on_device, storage_bytes, storage_key, tensors_on
from gpulint.units import format_bytes

_RESULTS = re.compile(r"_{1,3}|_[0-9]+")
_SHOWN = ("_", "__", "___")
RECORD = "IPython's record of the last cell"
_LIBRARIES = ("IPython", "ipykernel", "asyncio", "tornado")


@dataclass(frozen=True, slots=True)
class Root:
    """A place that holds `value`. `name` is what a reader of the notebook would call it; `is_result` of what IPython keeps by
    itself."""

    name: str
    value: Any
    is_result: bool = False


def roots(shell: Any) -> Iterator[Root]:
    """Every place, the user's own variables first."""
    yield from _variables(shell)
    yield from results(shell)
    for error in stored_errors():
        yield from _traceback(shell, error)


def _variables(shell: Any) -> Iterator[Root]:
    hidden = shell.user_ns_hidden
    for name, value in list(shell.user_ns.items()):
        ours = name in hidden and hidden[name] is value  # put there by IPython, and not overwritten since
        if not ours and not isinstance(value, ModuleType) and not _RESULTS.fullmatch(name):
            if name not in ("In", "Out", "_ih", "_oh", "_dh", "_exit_code", "__builtins__"):
                yield Root(f"`{name}`", value)


def results(shell: Any) -> Iterator[Root]:
    """`Out[n]`, `_`, `__`, `___`: results that were shown stay until they are deleted there."""
    for number, value in list(shell.user_ns.get("_oh", {}).items()):
        yield Root(f"`Out[{number}]`", value, True)
    for name in _SHOWN:
        # IPython's own copy stays where a program uses the name
        for names in (shell.user_ns, shell.user_ns_hidden):
            if name in names:
                yield Root(f"`{name}`", names[name], True)
    for name, value in list(shell.user_ns.items()):
        if re.fullmatch(r"_[0-9]+", name):
            yield Root(f"`{name}`", value, True)
    result = getattr(shell.last_execution_result, "result", None)
    if result is not None:
        yield Root(RECORD, result, True)


def forget_results(shell: Any) -> None:
    """Delete what IPython keeps of shown results, as `%reset out` does, and the copy of `_` that this leaves behind."""
    hook, hidden = shell.displayhook, shell.user_ns_hidden
    if hook.do_full_cache:
        hook.flush()
    for name in _SHOWN:
        setattr(hook, name, "")
        if name in hidden:
            if shell.user_ns.get(name) is hidden[name]:
                shell.user_ns[name] = ""
            hidden[name] = shell.user_ns.get(name, "")
    if shell.last_execution_result is not None:
        shell.last_execution_result.result = None


def _traceback(shell: Any, error: BaseException) -> Iterator[Root]:
    from gpulint.runtime.probes.frames import frame_locals

    for one in chain_of(error):
        yield Root(
            f"the last error ({type(one).__name__})",
            [*one.args, *vars(one).values(), getattr(one, "obj", None)],
        )
    for frame in frames_of(error):
        if str(frame.f_globals.get("__name__", "")).split(".")[0] not in _LIBRARIES:
            code = frame.f_code
            # As a copy: `f_locals` itself would stay on the frame.
            for name, value in frame_locals(frame).items():
                place = f"local `{name}` of {code.co_name}(), {_where(shell, code)}"
                yield Root(f"the last error ({place})", value)


def _where(shell: Any, code: CodeType) -> str:
    """The first line of a function, by its cell's number where it stands in one."""
    number = getattr(shell.compile, "_filename_map", {}).get(code.co_filename)
    file = os.path.basename(code.co_filename)
    if number is not None:
        file = f"In[{number}]"
    elif f"{os.sep}ipykernel_" in code.co_filename or file.startswith("<ipython-input"):
        file = "a cell"  # IPython 7 does not tell which one
    return f"{file}:{code.co_firstlineno}"


# -- what they hold ------------------------------------------------------------------------------------------------

MOST_OBJECTS = 300_000  # looked into, of all places together
_CLOSED = ("IPython.", "ipykernel.", "traitlets.", "zmq.", "asyncio.", "threading", "gpulint.")
NOWHERE = "nothing in the notebook: torch's C++ code, or a library"


@dataclass(slots=True)
class Storage:
    """The memory under one or several live tensors, with the places that lead to one of them, and those that do only through
    an autograd graph."""

    bytes: int
    shape: str
    holders: list[str] = field(default_factory=list)
    graphs: list[str] = field(default_factory=list)
    only_results: bool = True  # no variable of the user's leads here

    def held_by(self, root: Root, through_graph: bool) -> None:
        self.only_results &= root.is_result
        names = self.graphs if through_graph else self.holders
        # IPython's record is worth telling only where no other place holds the same.
        if root.name not in names and not (root.name == RECORD and (self.holders or self.graphs)):
            names.append(root.name)


@dataclass(frozen=True, slots=True)
class Holding:
    """What the same places hold: `names` of the places, the storages and their bytes; `shape` where it is one tensor. `in_graphs`
    of the bytes are reached only through an autograd graph."""

    names: tuple[str, ...]
    storages: int
    bytes: int
    shape: str = ""
    in_graphs: int = 0

    def __str__(self) -> str:
        what = self.shape if self.storages == 1 else f"{self.storages} tensors"
        share = "" if self.in_graphs == self.bytes else f"{format_bytes(self.in_graphs)} of it "
        graph = f", {share}in autograd graphs" if self.in_graphs else ""
        more = f" and {len(self.names) - 4} more" if len(self.names) > 4 else ""
        shown = ", ".join(self.names[:4]) + more
        return f"{format_bytes(self.bytes):>11}  {what}{graph}: {shown or NOWHERE}"


def storages(device: Any) -> dict[Any, Storage]:
    """The live tensor memory on `device` (a torch.device; None: all CUDA devices) that Python or a graph can reach."""
    found: dict[Any, Storage] = {}
    for tensor in tensors_on(device):
        key = storage_key(tensor)
        if key is not None and key not in found:
            found[key] = _storage_of(tensor)
    return found


def _storage_of(tensor: Any) -> Storage:
    dtype = str(tensor.dtype).removeprefix("torch.")
    return Storage(storage_bytes(tensor), f"{dtype}{list(tensor.shape)}")


def name_holders(shell: Any, found: dict[Any, Storage], device: Any) -> bool:
    """Note with each storage the places that hold it; what Python has no object of (gradients that nobody
    has asked for, what a graph keeps) is added where it is on `device` to `found`. Whether all places were
    looked at to the end."""
    left = MOST_OBJECTS
    for root in roots(shell):
        left, keys = _reached(root.value, left)
        for key, (tensor, through_graph) in keys.items():
            if key not in found and on_device(tensor, device):
                found[key] = _storage_of(tensor)
            if key in found:
                found[key].held_by(root, through_graph)
    return left > 0


def kept_results(shell: Any, device: Any) -> list[Holding]:
    """The tensor memory on a device that only results keep which were shown, by the names they go under."""
    found = storages(device)
    name_holders(shell, found, device)
    held = {key: one for key, one in found.items() if one.only_results and (one.holders or one.graphs)}
    return grouped(held)


def grouped(found: dict[Any, Storage]) -> list[Holding]:
    """One entry for all that the same places hold, the largest first."""
    groups: dict[tuple[str, ...], list[Storage]] = {}
    for storage in found.values():
        groups.setdefault(tuple(storage.holders or storage.graphs), []).append(storage)
    every = []
    for names, alike in groups.items():
        whole = sum(one.bytes for one in alike)
        behind = sum(one.bytes for one in alike if not one.holders and one.graphs)
        every.append(Holding(names, len(alike), whole, alike[0].shape, behind))
    return sorted(every, key=lambda holding: -holding.bytes)


# -- from a place down to tensors ----------------------------------------------------------------------------------


def _reached(value: Any, left: int) -> tuple[int, dict[Any, tuple[Any, bool]]]:
    """The storages below a value, each with a tensor and whether only a graph leads there; and how many objects may still be
    looked into."""
    from gpulint.runtime.holding.walking import Walk, explore, grad_fn_of, tensors_behind

    walk = Walk({}, storage_key, range(0), closed=_CLOSED, most=left)
    explore(walk, iter([(value, None)]))
    behind = list(tensors_behind(map(grad_fn_of, walk.tensors), set(), MOST_OBJECTS))
    keys: dict[Any, tuple[Any, bool]] = {}
    for through_graph, tensors in ((False, walk.tensors), (True, behind)):
        for tensor in tensors:
            keys.setdefault(storage_key(tensor), (tensor, through_graph))
    keys.pop(None, None)
    left -= len(walk.kept) + len(behind)
    walk.close()
    return left, keys
