"""`%load_ext gpulint`: the magics `%%gpu_memory` and `%gpu_memory`, and failed cells that let go of their memory: what one cell
left, who holds that, and what it freed."""

from __future__ import annotations

import contextlib
import gc
import re
import weakref
from collections.abc import Iterator
from typing import Any

from gpulint.memory.device import Unavailable, cuda_started, in_use, started_devices, torch_module
from gpulint.memory.errors import forget_errors
from gpulint.memory.figures import Window, close_window, open_window
from gpulint.memory.live import storage_key, tensors_on
from gpulint.memory.notebook import Storage, grouped, name_holders, storages
from gpulint.memory.releasing import clear
from gpulint.units import format_bytes

MOST_LINES = 12
ON_CPU = "no CUDA here: live tensors in host memory, and no peak"


class Cell:
    """A measurement, from when it is made, after collecting garbage, to when its lines are asked for."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.device, found, _ = _alive(shell)  # None: CUDA
        # Each storage there is; the reference answers None once it is freed
        self.before: dict[Any, tuple[weakref.ref[Any], Storage]] = {}
        for tensor in tensors_on(self.device):
            key = storage_key(tensor)
            if key in found and key not in self.before:
                self.before[key] = (weakref.ref(tensor.untyped_storage()), found[key])
        self.figures = {index: in_use(index) for index in started_devices()}
        self.peaks = [open_window(index) for index in started_devices()]

    def lines(self) -> list[str]:
        """End the measurement, and say what came of it."""
        for window in self.peaks:
            close_window(window)
        device, found, complete = _alive(self.shell)
        if self.device is not None and device is None:  # the cell was the first to use CUDA
            self.before, self.peaks = {}, [_whole(index) for index in started_devices()]
        self.device = device
        freed = {key: storage for key, (alive, storage) in self.before.items() if alive() is None}
        left = {key: found[key] for key in found if key in freed or key not in self.before}
        told = list(self._head(found))
        told += _part("left by this cell", left)
        told += _part("freed by this cell", freed)
        if not complete:
            told.append("  the notebook holds more objects than are looked into: some holders are not named")
        return told

    def _head(self, found: dict[Any, Storage]) -> Iterator[str]:
        if self.device is not None:
            yield f"gpu_memory: {ON_CPU}"
            before = sum(storage.bytes for _, storage in self.before.values())
            after = sum(one.bytes for one in found.values())
            yield f"  tensors {format_bytes(before)} -> {format_bytes(after)} ({format_bytes(after - before, signed=True)})"
            return
        for window in self.peaks:
            index = window.device
            allocated, reserved = in_use(index)
            old, held = self.figures.get(index, (0, 0))
            if max(allocated, reserved, old, held, window.peak):
                change = format_bytes(allocated - old, signed=True)
                yield (
                    f"gpu_memory: cuda:{index} allocated {format_bytes(old)} -> {format_bytes(allocated)} ({change}), peak"
                    f" {format_bytes(max(window.peak, allocated))}; reserved {format_bytes(held)} -> {format_bytes(reserved)}"
                )


def now(shell: Any) -> list[str]:
    """What is alive at this moment, by who holds it."""
    device, found, _ = _alive(shell)
    told = []
    if device is not None:
        told.append(f"gpu_memory: {ON_CPU}")
    for index in started_devices():
        allocated, reserved = map(format_bytes, in_use(index))
        told.append(f"gpu_memory: cuda:{index} allocated {allocated}, reserved {reserved}")
    return told + _part("alive", found)


def _alive(shell: Any) -> tuple[Any, dict[Any, Storage], bool]:
    """After collecting garbage, the device that is looked at, the memory on it with its holders, and whether all places were
    looked at to the end."""
    gc.collect()
    device = None if cuda_started() else torch_module().device("cpu")
    found = storages(device)
    return device, found, name_holders(shell, found, device)


def _whole(index: int) -> Window:
    window = Window("", index)
    with contextlib.suppress(RuntimeError):
        close_window(window)
    return window


def _part(title: str, found: dict[Any, Storage]) -> list[str]:
    total = sum(one.bytes for one in found.values())
    if not total:
        return [f"  {title}: nothing"]
    holdings = [one for one in grouped(found) if one.bytes]
    told = [f"  {title}: {format_bytes(total)}", *(f"  {one}" for one in holdings[:MOST_LINES])]
    rest = holdings[MOST_LINES:]
    if rest:
        told.append(f"  {format_bytes(sum(one.bytes for one in rest)):>11}  in {len(rest)} smaller groups")
    return told


NAME = "gpu_memory"
_MARK = re.compile(rf"\s*%%{NAME}[ \t]*(?:\r?\n|$)")
# A cell that looks at the last error, which must then still be there.
_DEBUGS = re.compile(
    rf"(?:\s*#[^\n]*\n|\s*\n)*\s*(?:%%?debug\b|%tb\b|%{NAME}\b|%pdb\b|(?:debug|tb)\s*$)"
    r"|(?s:.*)\b(?:pm\(|post_mortem\(|last_(?:exc|value|traceback)\b)"
)
_USAGE = f"%{NAME} [on | off | clear | clear out]"


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Says it where torch is missing."""
    try:
        yield
    except Unavailable as missing:
        print(f"{NAME}: {missing}")


class Extension:
    """What is installed in one IPython shell."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.lets_go = True
        self._running: list[Cell | None] = []

    def load(self) -> None:
        self.shell.register_magic_function(self.magic, "line_cell", NAME)
        self.shell.events.register("pre_run_cell", self.before_cell)
        self.shell.events.register("post_run_cell", self.after_cell)
        self.shell.input_transformers_cleanup.append(self.without_mark)

    def unload(self) -> None:
        self.shell.events.unregister("pre_run_cell", self.before_cell)
        self.shell.events.unregister("post_run_cell", self.after_cell)
        self.shell.input_transformers_cleanup.remove(self.without_mark)
        for kind in ("line", "cell"):
            self.shell.magics_manager.magics[kind].pop(NAME, None)

    # -- around every cell -----------------------------------------------------------------------------------

    def before_cell(self, info: Any) -> None:
        text = info.raw_cell or ""
        if self.lets_go and not _DEBUGS.match(text) and forget_errors():
            gc.collect()
        marked = not self._running and _MARK.match(text)
        self._running.append(self._begin() if marked else None)

    def after_cell(self, result: Any) -> None:
        cell = self._running.pop() if self._running else None
        if cell is not None:
            print("\n".join(cell.lines()))

    def without_mark(self, lines: list[str]) -> list[str]:
        """The lines of a cell without `%%gpu_memory` at its head: it runs as it would without, async or with other magics. An
        empty line stands there, so that tracebacks count lines as the notebook does, unless another cell magic follows, which
        has to come first. What runs within a cell keeps the line, which then is an ordinary magic."""
        if self._running or not lines or not _MARK.fullmatch(lines[0]):
            return lines
        following = next((line for line in lines[1:] if line.strip()), "")
        return lines[1:] if following.startswith("%%") else ["\n", *lines[1:]]

    def _begin(self) -> Cell | None:
        with _told():
            return Cell(self.shell)
        return None

    # -- the magics ------------------------------------------------------------------------------------------

    def magic(self, line: str, cell: str | None = None) -> None:
        """What a cell leaves in GPU memory, and who holds it.

        %%gpu_memory            as a cell's first line: what the cell left, with its holders, what it freed, and its peak
        %gpu_memory             what is alive now, by who holds it
        %gpu_memory clear       let go of the last error, collect garbage, return the cache; tells what `Out` and `_` hold
        %gpu_memory clear out   forget those results, too
        %gpu_memory off         a failed cell's variables stay until you clear (on: until the next cell, which is the default)
        """
        if cell is not None:  # below another cell magic
            self._around(cell)
        elif line.split() in (["on"], ["off"]):
            self.lets_go = line.split() == ["on"]
        elif line.split() in (["clear"], ["clear", "out"]):
            print(clear(outputs="out" in line.split()))
        elif line.strip():
            print(f"{NAME}: {line.strip()!r} is unknown; usage: {_USAGE}")
        else:
            with _told():
                print("\n".join(now(self.shell)))

    def _around(self, text: str) -> None:
        measured = self._begin()
        try:
            self.shell.run_cell(text, store_history=False).raise_error()
        finally:
            if measured is not None:
                print("\n".join(measured.lines()))


_loaded: dict[int, Extension] = {}


def load(shell: Any) -> None:
    """Install the extension in a shell, once."""
    if id(shell) not in _loaded:
        _loaded[id(shell)] = Extension(shell)
        _loaded[id(shell)].load()


def unload(shell: Any) -> None:
    """Take the extension out again."""
    extension = _loaded.pop(id(shell), None)
    if extension is not None:
        extension.unload()
