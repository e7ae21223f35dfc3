"""`Monitor` in Lightning and in Hugging Face's Trainer. The frameworks are imported when a callback is made."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, Final

# Not the run's end: a test may follow, or another fit. That is noted when the program ends.
_TRAINED: Final = "training over"


def lightning_callback(monitor: Any) -> Any:
    """A Lightning callback that reports to `monitor`. Raises ImportError where Lightning is not installed."""
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
    """A transformers callback that reports to `monitor`. Raises ImportError where it is not installed."""
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
    raise ImportError(
        f"{project} is not installed, so there is no trainer to attach this callback to"
    ) from missing
