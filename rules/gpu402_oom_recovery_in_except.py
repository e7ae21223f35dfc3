from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import Cost, Report, Rule

if TYPE_CHECKING:
    from gpulint.analysis.file.asking import FileFacts
    from gpulint.analysis.file.facts import OomHandler


class OomRecoveryInExcept(Rule):
    """
    ## What it does
    Finds recovery from CUDA running out of memory (`empty_cache()`, a retry, a smaller batch) inside the `except` block.

    Told with a doubt where the handler only cleans up: then nothing may need the memory before the block ends.

    ## Why is this bad
    Inside the handler the exception's traceback holds the frames that failed, and they hold their tensors: the failed
    step's activations cannot be freed there, whatever is called, with or without `as e`. They go when the block ends.

    ## What it costs
    A step that fails after its forward: 1.07 GiB still allocated inside the `except`, after `empty_cache()`; 175 MiB, which
    is the model, once the block has ended (4-layer language model, NVIDIA H200, torch 2.11).

    ## Example
    ```python
    import torch

    def step(model: torch.nn.Module, batch, optimizer):
        try:
            loss = model(batch).mean()
            loss.backward()
        except torch.cuda.OutOfMemoryError:
            torch.cuda.empty_cache()
            step(model, batch[: len(batch) // 2], optimizer)
    ```

    ## Use instead
    ```python
    import torch

    def step(model: torch.nn.Module, batch, optimizer):
        out_of_memory = False
        try:
            loss = model(batch).mean()
            loss.backward()
        except torch.cuda.OutOfMemoryError:
            out_of_memory = True
        if out_of_memory:
            torch.cuda.empty_cache()
            step(model, batch[: len(batch) // 2], optimizer)
    ```

    ## Fix safety
    The fix moves the handler's statements behind a flag after the `try`. It is unsafe: code between the two may count
    on the handler having run, and it is only offered where the handler does not use the exception and does not leave
    by `return`, `break`, `continue` or `raise`.
    """

    code = "GPU402"
    name = "oom-recovery-in-except"
    severity = Severity.WARNING
    runtime_claim = Claim("handler")
    doubts = True
    triggers = (
        (b"except",),
        (b"torch",),
        (b"OutOfMemory", b"out of memory", b"out_of_memory", b"OOM", b"is_oom", b"empty_cache"),
    )

    def check(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Report]:
        for function in facts.functions:
            for handler in function.handlers:
                yield _report(handler)


_DOES = {
    "empty_cache": "empties the cache",
    "gc.collect": "collects garbage",
    "forward": "runs the model again",
    "backward": "runs backward again",
    "retry": "tries the step again",
    "stored": "keeps the exception",
}


def _report(handler: OomHandler) -> Report:
    from gpulint.rules.detect.oom_repair import repair

    return Report(
        handler.recovery,
        f"the handler {_DOES[handler.why]} while the exception's traceback still holds the failed step's tensors",
        "inside the `except` block the frames that raised are alive; their tensors are freed when the block ends",
        Cost(
            "all that the failed step had allocated, until the block ends",
            "1.07 GiB allocated inside the block, 175 MiB after it, for a 4-layer language model; H200, torch 2.11",
        ),
        repair=lambda: repair(handler),
        doubts=("nothing is tried again before the block ends",) if not handler.needs_memory else (),
        subject=next((kind.path for kind in handler.handler.types if kind.path), ""),
    )
