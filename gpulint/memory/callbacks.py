"""`Monitor` in Lightning and in Hugging Face's Trainer. The frameworks are imported when a callback is made."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpulint.memory.milestones import Monitor


def lightning_callback(monitor: Monitor) -> Any:
    """A Lightning callback that reports to `monitor`. Raises ImportError where Lightning is not installed."""
    base = _first("lightning.pytorch", "pytorch_lightning", attribute="Callback", project="Lightning")

    class MemoryCallback(base):  # type: ignore[misc, valid-type]
        def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
            monitor.model(pl_module)

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            for optimizer in trainer.optimizers:
                monitor.optimizer(optimizer)

        def on_train_batch_end(self, *args: Any, **kwargs: Any) -> None:
            monitor.step()

        def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
            if not trainer.sanity_checking:
                monitor.validation()

        def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
            monitor.epoch(trainer.current_epoch)

        def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: Any) -> None:
            monitor.checkpoint()

        def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
            monitor.milestone("exception", type(exception).__name__)

        def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
            monitor.end()

    return MemoryCallback()


def huggingface_callback(monitor: Monitor) -> Any:
    """A transformers callback that reports to `monitor`. Raises ImportError where it is not installed."""
    base = _first("transformers", attribute="TrainerCallback", project="transformers")

    class MemoryCallback(base):  # type: ignore[misc, valid-type]
        def on_train_begin(
            self, args: Any, state: Any, control: Any, model: Any = None, optimizer: Any = None, **kwargs: Any
        ) -> None:
            monitor.model(model)
            if optimizer is not None:
                monitor.optimizer(optimizer)

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            monitor.step()

        def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            monitor.validation()

        def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            monitor.checkpoint(args.output_dir)

        def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            monitor.epoch(None if state.epoch is None else round(state.epoch))

        def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            monitor.end()

    return MemoryCallback()


def _first(*modules: str, attribute: str, project: str) -> Any:
    for name in modules:
        try:
            return getattr(import_module(name), attribute)
        except ImportError:
            continue
    raise ImportError(f"{project} is not installed, so there is no trainer to attach this callback to")
