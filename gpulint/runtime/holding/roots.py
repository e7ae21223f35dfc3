"""Where a search for holders begins: the variables of running functions and of modules, the user's first, and the instances
of the user's classes.

Each root comes with what it holds. A frame or a module is the user's as `Frames` says.
"""

from __future__ import annotations

import gc
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from gpulint.runtime.holding.paths import Root
from gpulint.runtime.probes.frames import Frames, frame_locals
from gpulint.runtime.probes.plain import attribute, attributes_of, is_one, module_of, name_of


def running_frames(frames: Frames, extra: tuple[types.FrameType, ...]) -> list[types.FrameType]:
    return _on_stacks(frames.is_user, extra)


def _on_stacks(wanted: Callable[[str], bool], extra: tuple[types.FrameType, ...]) -> list[types.FrameType]:
    """The frames on the stacks of all threads, and on those that `extra` are on top of, whose files are `wanted`."""
    found: list[types.FrameType] = []
    stacks = [sys._getframe(), *sys._current_frames().values(), *extra]
    for frame in stacks:
        current: types.FrameType | None = frame
        while current is not None:
            if current not in found and wanted(current.f_code.co_filename):
                found.append(current)
            current = current.f_back
    del stacks, frame  # they hold this function's own frame: a cycle, which would keep all the others
    return found


def user_roots(frames: Frames, running: list[types.FrameType]) -> Iterator[tuple[Any, Root]]:
    for frame in running:
        if frame.f_code.co_name != "<module>":
            for name, value in frame_locals(frame).items():
                yield value, Root("local", name, frame)
    for module in user_modules(frames):
        yield from _globals_of(module)


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
        if is_one(module, types.ModuleType) and _is_user_module(module, frames):
            yield module


def _is_foreign(package: Any, frames: Frames) -> bool:
    """Whether it is known to be a package that is not the user's; one without a file may be anybody's."""
    file = attribute(package, "__file__")
    return is_one(package, types.ModuleType) and type(file) is str and not frames.is_user(file)


def _is_user_module(module: types.ModuleType, frames: Frames) -> bool:
    if attribute(module, "__name__") in ("__main__", "__mp_main__"):
        return not attribute(module, "_gpulint_bootstrap")
    file = attribute(module, "__file__")
    return type(file) is str and frames.is_user(file)


def _globals_of(module: types.ModuleType) -> Iterator[tuple[Any, Root]]:
    for name, value in list((attributes_of(module) or {}).items()):
        if not (name.startswith("__") and name.endswith("__")):
            yield value, Root("global", name, module)


def other_roots(frames: Frames) -> Iterator[tuple[Any, Root]]:
    for name, module in list(sys.modules.items()):
        if (
            is_one(module, types.ModuleType)
            and not _is_user_module(module, frames)
            and name.split(".")[0] != "gpulint"
        ):
            yield from _globals_of(module)


def library_frames(frames: Frames) -> Iterator[tuple[Any, Root]]:
    """The locals of running functions that are not the user's: a framework's loop, say, that holds the user's objects."""
    for frame in _on_stacks(lambda file: not frames.is_user(file) and not frames.is_ours(file), ()):
        for name, value in frame_locals(frame).items():
            yield value, Root("local", name, frame)


def instances(frames: Frames) -> Iterator[tuple[Any, Root]]:
    """Every object of a class of the user's: what no variable leads to may still be an attribute's."""
    theirs: dict[type, bool] = {}
    for one in gc.get_objects():
        kind = type(one)
        if kind not in theirs:
            module: Any = sys.modules.get(module_of(kind))
            theirs[kind] = is_one(module, types.ModuleType) and _is_user_module(module, frames)
        if theirs[kind]:
            yield one, Root("object", name_of(kind), kind)
