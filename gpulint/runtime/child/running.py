"""Runs the user's script or module as `__main__`, as the interpreter itself would; and puts its end into one clear line, after a last
look while its frames are still there."""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import io
import os
import random
import runpy
import sys
import threading
import traceback
import types
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType, TracebackType
from typing import Any, Literal

from gpulint.runtime.probes import hooks
from gpulint.runtime.probes.frames import Frames, chain_of, site_in
from gpulint.runtime.record.result import NO_TORCH, End, Site, never_used_gpu, said_steps


def prepare(target: str, arguments: list[str], module: bool) -> None:
    """Set `sys.argv` and `sys.path[0]` as `python TARGET ARGS` or `python -m TARGET ARGS` does.

    The interpreter was started on gpulint's own file, so `sys.path[0]` is gpulint's folder, unless paths are
    safe (-P).
    """
    first = os.getcwd() if module else os.path.dirname(os.path.realpath(target))
    if os.path.isdir(target) and not module:
        first = target
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = first
    sys.argv = [target, *arguments]


def run(target: str, module: bool, compiler: Callable[[bytes, str], CodeType]) -> None:
    """Execute the program; `compiler` makes code of a script's source and path. Whatever the program raises,
    SystemExit too, comes out as it is."""
    if module:
        runpy.run_module(target, run_name="__main__", alter_sys=True)
    elif os.path.isdir(target) or target.endswith((".zip", ".pyz")):
        runpy.run_path(target, run_name="__main__")
    else:
        _run_script(target, compiler)


def _run_script(target: str, compiler: Callable[[bytes, str], CodeType]) -> None:
    path = os.path.abspath(target)
    main = types.ModuleType("__main__")
    loader = importlib.machinery.SourceFileLoader("__main__", path)
    main.__dict__.update(__file__=path, __builtins__=__builtins__, __loader__=loader, __cached__=None)
    sys.modules["__main__"] = main
    with io.open_code(path) as source:
        code = compiler(source.read(), path)
    exec(code, main.__dict__)


def is_ours(file: str) -> bool:
    """Whether code from this file is gpulint's, or what starts the program for it."""
    return Frames.is_ours(file) or file == "<frozen runpy>" or file == runpy.__file__


def without_ours(trace: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames of gpulint and runpy: those that start the program, and those of the watchers
    that stand between two of its own."""
    kept = []
    while trace is not None:
        if not is_ours(trace.tb_frame.f_code.co_filename):
            kept.append(trace)
        trace = trace.tb_next
    built: TracebackType | None = None
    for one in reversed(kept):
        built = TracebackType(built, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return built


def strip_ours(error: BaseException) -> TracebackType | None:
    """Takes gpulint's frames out of the tracebacks of an exception and of those that led to it; returns its own."""
    for one in chain_of(error):
        one.__traceback__ = without_ours(one.__traceback__)
    return error.__traceback__


def stack_text(frame: types.FrameType) -> str:
    """Where a frame stands, as a traceback says it, without gpulint's frames."""
    frames = [(one, line) for one, line in traceback.walk_stack(frame) if not is_ours(one.f_code.co_filename)]
    summary = traceback.StackSummary.extract(iter(reversed(frames)))
    return "".join(["Traceback (most recent call last):\n", *summary.format()])


def one_line(error: BaseException) -> str:
    """`ValueError: what it says`, on one line of at most 300 characters."""
    try:
        said = str(error)
    except Exception:
        said = "<no message>"
    first = " ".join(said.split())
    text = f"{type(error).__name__}: {first}" if first else type(error).__name__
    return text if len(text) <= 300 else text[:297] + "..."


def when_imported(name: str, then: Callable[[ModuleType], None]) -> bool:
    """Call `then` with a top-level module, now or as soon as it is imported. Returns whether it is there already."""
    module = sys.modules.get(name)
    if module is not None:
        then(module)
    else:
        sys.meta_path.insert(0, _ImportHook(name, then))
    return module is not None


class _ImportHook(importlib.abc.MetaPathFinder):
    """Waits for one top-level module."""

    def __init__(self, name: str, then: Callable[[ModuleType], None]) -> None:
        self._name = name
        self._then = then

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if fullname != self._name or path is not None:
            return None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(fullname, path, target) if find else None
            if spec is not None:
                if spec.loader is not None:
                    self._undo = hooks.around(spec.loader, "exec_module", after=self._done)
                return spec
        return None

    def _done(self, _: Any, module: ModuleType) -> None:
        """The loader has run a module; one loader may be there for several."""
        if module.__name__ == self._name and self in sys.meta_path:
            sys.meta_path.remove(self)
            self._undo()
            self._then(module)


def seed(number: int) -> None:
    """Seed python's generator now, and numpy's as soon as it is imported. The script may seed them anew."""

    def imported(numpy: ModuleType) -> None:
        with contextlib.suppress(Exception):  # a numpy that cannot be seeded is seen where two runs differ
            numpy.random.seed(number)

    random.seed(number)
    when_imported("numpy", imported)


# -- how it ends ---------------------------------------------------------------------------------------------

_ASKED = "the script asked for input"
_ALLOCATOR = ("allocator config", "allocator backend", "allocator setting")  # what torch's refusals speak of
# What RuntimeErrors of torch say where memory is wanting: on the host, and on a GPU before there was a class for it.
_NO_MEMORY = ("can't allocate memory", "CUDA out of memory")
_NO_INPUT = "EOF when reading a line"  # what `input()` says where there is none


def finished(harness: Any) -> End:
    """The script ran to its end by itself."""
    harness.ended()
    if harness.session.asked_for_cuda_in_vain:
        return End("no-device", never_used_gpu(harness.session.options.limited), code=0)
    if harness.session.steps:
        few = ", all of them warm-up (--warmup 0 samples from the first step on)"
        few = "" if harness.session.sampled else few
        return End("finished", f"the script ended by itself{_so_far(harness)}{few}", code=0)
    if harness.session.torch is None:
        why = "" if _has_torch() else f"; {NO_TORCH.format(sys.executable)}"
        return End("no-torch", f"the script ended without importing torch{why}", code=0)
    why = "the script ended without a step: no optimizer stepped and no module ran twice"
    hint = "call gpulint.step() once per iteration if its loop has neither"
    others = "note that of the processes it starts itself only those of multiprocessing are followed"
    return End("no-steps", f"{why}; {hint}, and {others}", code=0)


def failed(harness: Any, error: BaseException, module: bool) -> int:
    """The script raised, or called sys.exit. Reports it, shows the traceback as Python would, returns the
    exit code."""
    if isinstance(error, SystemExit):
        if error.code is not None and not isinstance(error.code, int):
            print(error.code, file=sys.stderr)
        return _left(harness, error)
    trace = strip_ours(error)
    lacking = (error.name or "") if isinstance(error, ModuleNotFoundError) else ""
    if lacking.partition(".")[0] == "torch" and not _has_torch():
        where = _innermost(harness, trace)
        harness.report(End("no-torch", NO_TORCH.format(sys.executable), code=1, where=where))
        return 1
    if trace is None and module and isinstance(error, ImportError):
        text = "".join(traceback.format_exception(type(error), error, trace))
        harness.report(End("not-started", f"the module could not be run: {error}", text, 1))
    else:
        _raised(harness, error, trace)
    _show(error, trace)
    return 1


def failed_in_worker(harness: Any, error: BaseException) -> None:
    """A worker of the script's raised, or called sys.exit. Reports it; the rest is the concern of who started it."""
    cause = error.__context__ if isinstance(error, SystemExit) and error.code else None
    if isinstance(cause, Exception):  # torch.multiprocessing passes it on, and leaves
        error = cause
    if isinstance(error, SystemExit):
        _left(harness, error)
    else:
        _raised(harness, error, strip_ours(error))


def _raised(harness: Any, error: BaseException, trace: TracebackType | None) -> None:
    text = "".join(traceback.format_exception(type(error), error, trace))
    asked = isinstance(error, EOFError) and str(error) == _NO_INPUT
    what = _ASKED if asked else f"the script raised {one_line(error)}"
    message = f"{what}{_so_far(harness)}{', and there was none' if asked else ''}"
    where, refusal = _innermost(harness, trace), _refusal(one_line(error).partition(": ")[2])
    exhausted = _is_out_of_memory(error)
    _report(harness, trace, End("raised", message, text, 1, None, where, asked, refusal, exhausted))


def _report(harness: Any, trace: TracebackType | None, failure: End) -> None:
    """A failure, while its traceback holds the script's frames: unless the script is not to blame."""
    harness.looks.look_at_end(tuple(frame for frame, _ in traceback.walk_tb(trace)))
    harness.report(harness.excused(failure.message) or failure)


def _is_out_of_memory(error: BaseException) -> bool:
    """Whether there was no memory left, on the GPU or on the host."""
    torch = sys.modules.get("torch")
    kinds = tuple(filter(None, (MemoryError, getattr(torch, "OutOfMemoryError", None))))
    said = isinstance(error, RuntimeError) and any(words in str(error) for words in _NO_MEMORY)
    return isinstance(error, kinds) or said


def _refusal(said: str) -> str:
    """The sentence in which torch says that it does not take an allocator setting; empty where that is not what went
    wrong. Nothing but its words tells."""
    for sentence in said.split(". "):
        if any(words in sentence.lower() for words in _ALLOCATOR):
            return sentence.strip().removesuffix(".")
    return ""


def _so_far(harness: Any) -> str:
    session = harness.session
    return f" after {said_steps(session.counts)}" if session.steps else " before its first step"


def _has_torch() -> bool:
    with contextlib.suppress(ImportError, ValueError):
        return importlib.util.find_spec("torch") is not None
    return False


def _left(harness: Any, error: SystemExit) -> int:
    code = error.code
    if code is None or code == 0:
        harness.report(finished(harness))
        return 0
    number = code if isinstance(code, int) else 1
    said = "" if isinstance(code, int) else f": {' '.join(str(code).split())[:200]}"
    trace = strip_ours(error)
    message = f"the script called sys.exit({number}){_so_far(harness)}{said}"
    where, refusal = _innermost(harness, trace), _refusal(said[2:])
    _report(harness, trace, End("exit", message, code=number, where=where, refusal=refusal))
    return number


def _show(error: BaseException, trace: TracebackType | None) -> None:
    hook = sys.excepthook
    try:
        hook(type(error), error.with_traceback(trace), trace)
    except Exception:
        traceback.print_exception(type(error), error, trace)


def cut_short(harness: Any, why: Literal["timeout", "interrupted", "stopped"]) -> None:
    """The parent has asked for the end. Runs on the channel's thread while the main thread may be stuck
    anywhere."""
    if why == "stopped":
        harness.report(End("stopped", "stopped when its workers were"))
        return
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    user = harness.session.frames.user_frame(frame)
    where = site_in(user.f_code, user.f_lineno or 0) if user is not None else None
    stack = stack_text(user) if user is not None else None
    harness.looks.look_at_end(())
    at = f", at {os.path.basename(where.file)}:{where.line} in {where.function}" if where is not None else ""
    reason = "the time was up" if why == "timeout" else "interrupted"
    harness.report(End(why, f"{reason}{_so_far(harness)}{at}", traceback=stack, where=where))


def _innermost(harness: Any, trace: TracebackType | None) -> Site | None:
    codes = [(frame.f_code, line) for frame, line in traceback.walk_tb(trace)]
    theirs = [one for one in codes if harness.session.frames.is_user(one[0].co_filename)]
    return site_in(*theirs[-1]) if theirs else None
