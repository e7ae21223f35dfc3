"""`Monitor`: the memory of a whole run, one line a milestone."""

from __future__ import annotations

import atexit
import json
import logging
import os
import sys
import time
import weakref
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from gpulint.memory.device import tell, torch_module
from gpulint.memory.figures import MemoryStats, stats
from gpulint.runtime.probes import hooks
from gpulint.units import format_bytes

# Not the run's end: a test may follow, or another fit. That is noted when the program ends.
_TRAINED: Final = "training over"


def lightning_callback(monitor: Any) -> Any:
    """A callback for `Trainer(callbacks=[...])` of Lightning (either package name). Raises ImportError where it is not installed."""
    base = _base("lightning.pytorch", "pytorch_lightning", attribute="Callback", project="Lightning")

    class MemoryCallback(base):  # type: ignore[misc, valid-type]
        steps = 0

        def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
            monitor.model(pl_module)

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            for optimizer in trainer.optimizers:
                monitor.optimizer(optimizer)

        def on_train_batch_end(self, trainer: Any, *args: Any, **kwargs: Any) -> None:
            # Under accumulation only some batches end with a step of the optimizer.
            if trainer.global_step != self.steps:
                self.steps = trainer.global_step
                monitor.step()

        def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
            if not trainer.sanity_checking:
                monitor.validation()

        def on_test_end(self, trainer: Any, pl_module: Any) -> None:
            monitor.validation("test")

        def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
            monitor.epoch(trainer.current_epoch)

        def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: Any) -> None:
            monitor.checkpoint()

        def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
            monitor.milestone("exception", type(exception).__name__)

        def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
            monitor.milestone(_TRAINED)

    return MemoryCallback()


def huggingface_callback(monitor: Any) -> Any:
    """A callback for `Trainer(callbacks=[...])` of Hugging Face transformers. Raises ImportError where it is not installed."""
    base = _base("transformers", attribute="TrainerCallback", project="transformers")

    class MemoryCallback(base):  # type: ignore[misc, valid-type]
        def on_train_begin(
            self, args: Any, state: Any, control: Any, model: Any = None, optimizer: Any = None, **kwargs: Any
        ) -> None:
            monitor.model(model)
            if optimizer is not None:
                # accelerate's wrapper says nothing about what it wraps.
                monitor.optimizer(getattr(optimizer, "optimizer", optimizer))

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            monitor.step()

        def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            monitor.validation()

        def on_predict(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            monitor.validation("predict")

        def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            monitor.checkpoint(f"{args.output_dir}/checkpoint-{state.global_step}")

        def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            monitor.epoch(None if state.epoch is None else round(state.epoch))

        def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            monitor.milestone(_TRAINED)

    return MemoryCallback()


def _base(*modules: str, attribute: str, project: str) -> Any:
    """The class to derive from: of the package that the program has imported, else of the first that is installed."""
    missing: ImportError | None = None
    for name in sorted(modules, key=lambda name: name not in sys.modules):
        try:
            return getattr(import_module(name), attribute)
        except ModuleNotFoundError as error:
            if error.name not in (name, name.partition(".")[0]):
                raise  # it is installed, and lacks something
            missing = error
    lacking = f"{project} is not installed, so there is no trainer to attach this callback to"
    raise ImportError(lacking) from missing


@dataclass(frozen=True, slots=True)
class Milestone:
    """A moment of the run: its name, seconds since the start, the figures, and what has to be added ("3 of 10",
    parameter bytes)."""

    name: str
    seconds: float
    figures: MemoryStats
    detail: str = ""

    def to_json(self) -> dict[str, Any]:
        said = {"milestone": self.name, "seconds": round(self.seconds, 3), "detail": self.detail}
        return {**said, **self.figures.to_json()}


class Monitor:
    """Logs one line at each milestone and writes it as a JSON line to `file` as well.

        run = memory.Monitor("memory.jsonl")        # "start" is recorded
        run.model(model); run.optimizer(optimizer)
        for epoch in range(10):
            for batch in loader:
                ...
                run.step()                          # recorded every `every` steps
            run.validation()
            run.epoch(epoch)
        run.end()

    Where the steps are out of sight, `optimizer_steps=True` counts those of the optimizer that steps first instead. The file is appended to; all records of one Monitor have the same `run`, the time of its start. Where it
    cannot be written, a warning says so and the run goes on. `Monitor.install()` does this for a plain loop by itself; callbacks for Lightning and Hugging Face are made by
    `run.lightning_callback()` and `run.huggingface_callback()`. Under torchrun each process has its rank in its
    lines and, where `file` is given, in its file's name.
    """

    def __init__(
        self,
        file: str | os.PathLike[str] | None = None,
        *,
        every: int = 0,
        device: Any = None,
        quiet: bool = False,
        optimizer_steps: bool = False,
    ) -> None:
        self._file = None if file is None else Path(file)
        rank, world = _rank()
        if self._file is not None and world > 1:
            self._file = self._file.with_name(f"{self._file.stem}-rank{rank}{self._file.suffix}")
        self._every = every
        self._device = device
        self._quiet = quiet
        self._began = time.perf_counter()
        self._run = datetime.now(timezone.utc).isoformat(timespec="microseconds")
        self._process = os.getpid()
        self._steps = 0
        self._ended = False
        self._hooks: _Hooks | None = None
        self.milestones: list[Milestone] = []
        self.milestone("start")
        atexit.register(self.end)
        if optimizer_steps:
            self._hooks = _Hooks(self, loop=False)

    @classmethod
    def install(
        cls, file: str | os.PathLike[str] | None = None, *, every: int = 0, device: Any = None
    ) -> Monitor:
        """A monitor that finds the milestones of a plain training loop by itself: first forward (the model is on
        the device, and epoch 0 begins), first optimizer step, the start of each further pass over the training loader (epoch), the
        first and the last batch in eval mode (validation), `torch.save` (checkpoint), and the end."""
        monitor = cls(file, every=every, device=device)
        monitor._hooks = _Hooks(monitor, loop=True)
        return monitor

    # -- milestones ------------------------------------------------------------------------------------------

    def milestone(self, name: str, detail: str = "") -> Milestone:
        """Record any moment under a name of your own."""
        made = Milestone(name, time.perf_counter() - self._began, stats(self._device, blocks=False), detail)
        previous = self.milestones[-1] if self.milestones else None
        self.milestones.append(made)
        if not self._quiet:
            tell(self._line(made, previous))
        self._write({"run": self._run, "rank": _rank()[0], **made.to_json()})
        return made

    def model(self, model: Any = None) -> Milestone:
        """The model is on its device."""
        return self.milestone("model on device", _parameters(model))

    def optimizer(self, optimizer: Any = None) -> Milestone:
        """The optimizer exists. Its state (Adam: twice the parameters) comes with its first step."""
        return self.milestone("optimizer created", type(optimizer).__name__ if optimizer is not None else "")

    def step(self) -> Milestone | None:
        """A training step is over; recorded at every `every`-th call (never where `every` is 0)."""
        self._steps += 1
        if self._every and self._steps % self._every == 0:
            return self.milestone("step", str(self._steps))
        return None

    def epoch(self, number: int | None = None) -> Milestone:
        return self.milestone("epoch", "" if number is None else str(number))

    def validation(self, detail: str = "") -> Milestone:
        return self.milestone("validation", detail)

    def checkpoint(self, path: str | os.PathLike[str] | None = None) -> Milestone:
        return self.milestone("checkpoint", "" if path is None else os.fspath(path))

    def end(self) -> None:
        """The run is over; called at exit too. Once."""
        if self._ended or os.getpid() != self._process:
            return  # at the exit of a forked child the run goes on
        self._ended = True
        atexit.unregister(self.end)
        if self._hooks is not None:
            self._hooks.remove()
        self.milestone("end")

    # -- in a framework --------------------------------------------------------------------------------------

    lightning_callback = lightning_callback
    huggingface_callback = huggingface_callback

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    # -- writing ---------------------------------------------------------------------------------------------

    def _write(self, record: dict[str, Any]) -> None:
        if self._file is None:
            return
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with open(self._file, "a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
        except OSError as error:  # a full disk is no reason to end a training
            tell(f"milestones are no longer written to {self._file}: {error}", logging.WARNING)
            self._file = None

    def _line(self, made: Milestone, previous: Milestone | None) -> str:
        name = f"{made.name} {made.detail}".strip()
        rank, world = _rank()
        line = f"[rank {rank}] " if world > 1 else ""
        line += f"memory at {name} ({made.seconds:.1f} s): {made.figures.summary()}"
        if previous is None or made.figures.missing:
            return line
        change = made.figures.allocated - previous.figures.allocated
        return f"{line} | {format_bytes(change, signed=True)} since {previous.name}"


def _rank() -> tuple[int, int]:
    """Rank and number of processes: what torch.distributed says, before it has started what the launcher says
    (Lightning's own launcher numbers only the processes of a node)."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank()), int(distributed.get_world_size())
    said = os.environ.get("RANK") or os.environ.get("LOCAL_RANK") or "0"
    return int(said), int(os.environ.get("WORLD_SIZE") or 1)


def _parameters(model: Any) -> str:
    if model is None:
        return ""
    size = sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())
    return f"{type(model).__name__}, parameters {format_bytes(size)}"


class _Hooks:
    """The milestones of a plain loop: watches optimizer steps for one Monitor, and of a `loop` outermost forwards, loaders and
    `torch.save` too."""

    def __init__(self, monitor: Monitor, loop: bool) -> None:
        self._monitor = monitor
        self._depth = 0
        self._trained = False
        self._stepping: weakref.ref[Any] | None = None
        self._validating = 0
        self._epochs = 0
        self._current_loader: weakref.ref[Any] | None = None
        self._training_loader: weakref.ref[Any] | None = None
        self._undo = ExitStack()
        torch, undo = torch_module(), self._undo.callback
        undo(hooks.optimizers(stepped=self._after_step))
        if loop:
            undo(hooks.modules(self._before_forward, self._after_forward))
            undo(hooks.around(torch.utils.data.DataLoader, "__iter__", self._before_loader))
            undo(hooks.around(torch, "save", lambda *_, **__: self._end_validation(), self._after_save))

    def remove(self) -> None:
        self._end_validation()
        self._undo.close()

    # -- events ----------------------------------------------------------------------------------------------

    def _before_forward(self, module: Any) -> None:
        self._depth += 1
        # A criterion is a module too, and holds no parameters.
        if self._depth > 1 or next(module.parameters(), None) is None:
            return
        if not module.training:
            if self._trained:
                self._validating += 1
            return
        self._end_validation()
        if not self._trained:
            self._trained = True
            self._monitor.model(module)
            if self._current_loader is not None:
                self._monitor.epoch(self._epochs)
        self._training_loader = self._current_loader or self._training_loader

    def _after_forward(self, _: Any) -> None:
        self._depth = max(0, self._depth - 1)

    def _after_step(self, optimizer: Any) -> None:
        self._depth = 0  # a forward that raised between its hooks must not hide all later ones
        if self._stepping is None:
            self._monitor.milestone("first optimizer step", type(optimizer).__name__)
        # Of several optimizers of one step the first counts; when it is gone, the next.
        if self._stepping is None or self._stepping() is None:
            self._stepping = weakref.ref(optimizer)
        if self._stepping() is optimizer:
            self._monitor.step()

    def _before_loader(self, loader: Any) -> None:
        training = self._training_loader() if self._training_loader is not None else None
        if training is loader:
            self._end_validation()
            self._epochs += 1
            if self._current_loader is not None:
                self._monitor.epoch(self._epochs)
        self._current_loader = weakref.ref(loader)

    def _after_save(self, _: Any, __: Any = None, target: Any = None, *___: Any, **named: Any) -> None:
        """An open file has its name too, and so has the one that `save_checkpoint` writes."""
        target = named.get("f", target)
        path = getattr(target, "name", target) if hasattr(target, "write") else target
        self._monitor.checkpoint(path if isinstance(path, (str, os.PathLike)) else None)

    def _end_validation(self) -> None:
        if self._validating:
            batches, self._validating = self._validating, 0
            self._monitor.validation(f"{batches} batches")
