"""`oom_guard`: recovery from out-of-memory errors after the handler has ended.

Inside an `except` block the exception's traceback keeps every frame of the failed step alive, with all their
tensors: cleaning up there frees almost nothing. So the error is caught, what is to be known about it is noted, and
everything else happens when the block is over.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import logging
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Final, Literal, TypeVar, cast

from gpulint.memory.device import cuda_started, logger, torch_module
from gpulint.memory.errors import empty_frames
from gpulint.memory.figures import MemoryStats, stats
from gpulint.memory.oom import Diagnosis, diagnose, figures_of
from gpulint.memory.oom.messages import OomMessage, parse_message
from gpulint.memory.releasing import Cleared, clear
from gpulint.units import format_bytes

F = TypeVar("F", bound=Callable[..., Any])
Retry = Literal["halve"] | int | None
_TOLD: Final = "_gpulint_told"
_RECOVERED: Final = ("allocated", "reserved")


@dataclass(frozen=True, slots=True)
class OomEvent:
    """One out-of-memory error: the diagnosis, the line of the user's code, the figures when it was raised, what
    the cleaning freed, and the file of the snapshot if one was written."""

    diagnosis: Diagnosis
    where: str
    before: MemoryStats
    cleared: Cleared
    snapshot: str | None = None

    @property
    def freed(self) -> int:
        """How far allocated memory fell between the error and the end of the cleaning."""
        return self.before.allocated - self.cleared.allocated

    def line(self) -> str:
        """What is new where the like has been explained before, in one line."""
        message = self.diagnosis.message
        known = (("requested", message.requested), ("in tensors", message.allocated))
        figures = ", ".join(f"{name} {format_bytes(size)}" for name, size in known if size is not None)
        return f"out of memory again in {self.where}: {figures or self.diagnosis.headline}"

    def lines(self) -> list[str]:
        shown = [f"out of memory in {self.where}", *self.diagnosis.lines()]
        if not self.cleared.missing:
            moved = ((name, getattr(self.before, name), getattr(self.cleared, name)) for name in _RECOVERED)
            told = (f"{name} {format_bytes(old)} -> {format_bytes(new)}" for name, old, new in moved)
            shown.append(f"recovered: {', '.join(told)}")
        if self.snapshot:
            shown.append(f"snapshot: {self.snapshot} (open it at https://pytorch.org/memory_viz)")
        return [*shown, figures_of(self.diagnosis.message)]


def is_oom(error: BaseException) -> bool:
    """Whether an exception says that memory ran out: the allocator's own type, or a RuntimeError that says so."""
    cuda = sys.modules.get("torch.cuda")
    if cuda is not None and isinstance(error, cuda.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and parse_message(str(error)) is not None


@dataclass(eq=False)
class OomGuard:
    """Recover from out-of-memory errors: free what the failed step held, say why it failed and what helps.

        @memory.oom_guard(retry="halve")
        def train(batch_size=64): ...

        with memory.oom_guard(reraise=False) as guard:
            loss = step(batch)
        if guard.last:
            continue                        # skip the batch

    `retry=N` calls the function again up to N times; `retry="halve"` calls it with half of its argument
    `batch_size` (the name may be another one; if there is no such parameter, the first argument), down to
    `minimum`, and later calls go on with the size that worked. `snapshot` writes the allocator's state at the
    time of the error to this file. With `reraise=False` a final error is swallowed. The diagnosis is logged to
    `gpulint.memory` at `level`, once for a kind of error at a line; each further one of them takes a line.

    As a context manager it cleans up and lets the error go on, as a decorator, or through `run`, it can also try again.
    `events` are the errors seen so far, `last` the latest or None.
    """

    retry: Retry = None
    _: KW_ONLY
    batch_size: str = "batch_size"
    minimum: int = 1
    snapshot: str | os.PathLike[str] | None = None
    reraise: bool = True
    level: int = logging.ERROR
    events: list[OomEvent] = field(default_factory=list, init=False, repr=False)
    _worked: int | None = field(default=None, init=False, repr=False)
    _explained: set[tuple[str, str]] = field(default_factory=set, init=False, repr=False)  # kinds, places

    def __post_init__(self) -> None:
        retry = self.retry
        if retry is not None and retry != "halve" and not (isinstance(retry, int) and retry >= 0):
            raise ValueError(f'retry must be None, a number of attempts or "halve", got {retry!r}')
        self.minimum = max(1, self.minimum)

    @property
    def last(self) -> OomEvent | None:
        return self.events[-1] if self.events else None

    # -- with ------------------------------------------------------------------------------------------------

    def __enter__(self) -> OomGuard:
        if self.retry is not None:
            raise TypeError(
                "a with block cannot be run again: use oom_guard(retry=...) as a decorator or its run()"
            )
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if error is None or not is_oom(error):
            return False
        failure = _Failure(error, self.snapshot is not None)
        del kind, trace
        self._tell(self._recover(failure, error), error)
        return not self.reraise

    # -- calls -----------------------------------------------------------------------------------------------

    def __call__(self, function: F) -> F:
        if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
            raise TypeError(
                f"{function.__qualname__}() is a coroutine or generator, which fails after its call has returned:"
                " put `with oom_guard():` into its body"
            )

        @functools.wraps(function)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            return self.run(function, *args, **kwargs)

        return cast("F", guarded)

    def run(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call `function`; on an out-of-memory error recover and, where `retry` says so, call it again."""
        sizes = _Sizes(function, self.batch_size, args, kwargs) if self.retry == "halve" else None
        if sizes is not None and self._worked is not None and sizes.size > self._worked:
            sizes.use(self._worked)
        attempts = 0
        while True:
            error: BaseException | None = None
            try:
                if sizes is not None:
                    return function(*sizes.bound.args, **sizes.bound.kwargs)
                return function(*args, **kwargs)
            except Exception as caught:
                if not is_oom(caught):
                    raise
                failure, error = _Failure(caught, self.snapshot is not None), caught
            # Here the handler has ended. What the error still refers to are the frames of the failed call: they
            # are over, and emptied, they hold no tensor.
            event = self._recover(failure, error)
            attempts += 1
            again = None
            if sizes is not None and sizes.size // 2 >= self.minimum:
                self._worked = sizes.use(sizes.size // 2)
                again = f"trying again with {sizes.name}={sizes.size}"
            elif isinstance(self.retry, int) and attempts <= self.retry:
                again = f"trying again ({attempts} of {self.retry})"
            self._tell(event, error, again)
            if again is None:
                if self.reraise:
                    raise error
                return None
            del failure, error

    def _recover(self, failure: _Failure, error: BaseException) -> OomEvent:
        empty_frames(error)
        snapshot = self._write_snapshot(failure)
        event = OomEvent(failure.diagnosis, failure.where, failure.before, _cleared(), snapshot)
        self.events.append(event)
        return event

    def _tell(self, event: OomEvent, error: BaseException, again: str | None = None) -> None:
        """Log an error: the first of its kind at its place with the diagnosis, each further one in a line."""
        if getattr(error, _TOLD, False):
            return  # a guard further in has explained this very error
        with contextlib.suppress(AttributeError):
            setattr(error, _TOLD, True)
        kind = (event.diagnosis.kind, event.where)
        if kind in self._explained:
            said = "; ".join(filter(None, (event.line(), again)))
            logger.log(logging.WARNING if again else self.level, "%s", said)
        else:
            self._explained.add(kind)
            logger.log(self.level, "%s", "\n".join(event.lines()))
            if again is not None:
                logger.warning("%s", again)
        if again is None and self.reraise and hasattr(error, "add_note"):
            error.add_note(f"gpulint: {event.diagnosis.headline}")

    def _write_snapshot(self, failure: _Failure) -> str | None:
        state, failure.snapshot = failure.snapshot, None
        if self.snapshot is None or state is None:
            return None
        import pickle

        try:
            with open(self.snapshot, "wb") as file:
                pickle.dump(state, file)
        except OSError as error:  # a full disk must not take the place of the error, nor prevent a retry
            logger.warning("no snapshot could be written: %s", error)
            return None
        return os.fspath(self.snapshot)


oom_guard = OomGuard


class _Failure:
    """What is to be known about an error, noted while its frames are alive."""

    def __init__(self, error: BaseException, snapshot: bool) -> None:
        self.before = _figures()
        frames = traceback.extract_tb(error.__traceback__)
        self.where = _where(frames)
        message = _completed(parse_message(str(error)) or OomMessage("cuda"), self.before)
        passed = [(frame.filename, frame.name) for frame in frames]
        self.diagnosis = diagnose(message, self.before.retries or None, passed)
        self.snapshot: Any = None
        if snapshot and cuda_started():
            with contextlib.suppress(RuntimeError):
                self.snapshot = torch_module().cuda.memory._snapshot()


# After some CUDA errors every further call fails as well. The error at hand must not be replaced by such a one.
_SILENT: Final = "the driver does not answer any more"


def _figures() -> MemoryStats:
    try:
        return stats(blocks=False)
    except RuntimeError as error:
        return MemoryStats(-1, missing=f"{_SILENT} ({error})")


def _cleared() -> Cleared:
    try:
        return clear()
    except RuntimeError as error:
        return Cleared(0, missing=f"{_SILENT} ({error})")


def _completed(message: OomMessage, figures: MemoryStats) -> OomMessage:
    """What a message does not say of the card (that of another allocator backend, or of an extension), from the
    allocator's own figures."""
    told = message.source != "allocator" or message.allocated is not None
    if told or figures.total is None or figures.missing:
        return message
    known = {name: getattr(figures, name) for name in ("device", "total", "free", "allocated", "cached")}
    return replace(message, **known)


def _where(frames: Sequence[traceback.FrameSummary]) -> str:
    """The innermost line that is not torch's or gpulint's."""
    inside = (f"{os.sep}site-packages{os.sep}", f"{os.sep}gpulint{os.sep}memory{os.sep}")
    own = [frame for frame in frames if not any(part in frame.filename for part in inside)]
    if not frames:
        return "an unknown place"
    last = (own or frames)[-1]
    name = last.name if last.name.startswith("<") else f"{last.name}()"
    return f"{last.filename}:{last.lineno} in {name}"


class _Sizes:
    """The batch size among the arguments of a call, in `bound`."""

    def __init__(
        self, function: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.bound = inspect.signature(function).bind(*args, **kwargs)
        self.bound.apply_defaults()
        given = self.bound.arguments
        self.name = name if name in given else next(iter(given), "")
        value = given.get(self.name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(
                f'oom_guard(retry="halve") needs an integer parameter {name!r} (or an integer as the first'
                f" argument) in {getattr(function, '__qualname__', function)}()"
            )

    @property
    def size(self) -> int:
        return int(self.bound.arguments[self.name])

    def use(self, size: int) -> int:
        self.bound.arguments[self.name] = size
        return size
