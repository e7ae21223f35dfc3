from __future__ import annotations

from collections.abc import Iterator

from gpulint.rules._hot import Habit, HotCall, HotRule

from gpulint.analysis.asked import Asked
from gpulint.analysis.queries.calls import calls_doing
from gpulint.answers import Answer, Question, refuted
from gpulint.claims import Claim
from gpulint.rule import Cost


def _meant(asked: Asked, made: HotCall) -> Iterator[Answer]:
    """That the collector is kept from running by itself: then somebody has to call it now and then."""
    told = next(calls_doing(asked.evaluator, made.frame.function.file, _STEERS), None)
    if told is not None and made.every != 1:
        yield refuted(Question.MEANT, "the collector is kept from running by itself", told[0])


def _kept(asked: Asked, made: HotCall) -> str:
    if "create_graph" in asked.file.words or any(calls_doing(asked.evaluator, asked.file, _STEERS)):
        return "something here makes reference cycles, or has the collector wait"
    return ""


_STEERS = ("stops collecting", "sets collector")
_HABIT = Habit(
    "collects",
    "walks all objects of the process",
    "tensors are freed with their last reference; only reference cycles wait for the collector",
    Cost(
        "time in every step, the more of it the more objects there are",
        "2.2 times the step time of a 4-layer language model, 22 times that of a 16-layer MLP; H200, torch 2.11",
    ),
    slowdown=2.2,
    meant=_meant,
    kept=_kept,
)


class GcCollectInHotLoop(HotRule):
    """
    ## What it does
    Finds `gc.collect()` called in every step of a training loop. In every so many steps, `if i % 50 == 0`, it is a
    note with that part of the cost, as long as that is a hundredth of a step or more and the collector runs by itself, and in an
    evaluation, too. In other loops it is told with a doubt: a round may take so long that the call does not matter.

    ## Why is this bad
    A tensor is freed when its last reference goes; the garbage collector only matters for reference cycles, and Python
    runs it by itself. A full collection walks every object of the process, which for a program that has imported
    torch takes longer than the step.

    ## What it costs
    2.2 times the step time of a 4-layer language model (46.4 against 20.7 ms) and 22 times that of a 16-layer MLP (51.1
    ms against 2.29 ms; 49.2 ms with `empty_cache()` after it), with no effect on memory: the language model's peak is
    2.39 GiB allocated and 3.24 GiB reserved either way (NVIDIA H200, torch 2.11).

    ## Example
    ```python
    import gc
    import torch
    from torch import nn

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    for inputs in loader:
        loss = model(inputs).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        gc.collect()
    ```

    ## Use instead
    ```python
    import gc
    import torch
    from torch import nn

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    for inputs in loader:
        loss = model(inputs).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    ```

    ## Fix safety
    Removing the call changes no result: safe. Unsafe where something makes reference cycles (`create_graph=True`) or keeps
    the collector from running, just after a `del`, and where the program reads figures of memory. Loops whose rounds are
    whole phases, epochs, rollouts or runs tried again with less, are not reported.
    """

    code = "GPU502"
    name = "gc-collect-in-hot-loop"
    runtime_claim = Claim("time", ("gc.collect",))
    habits = (_HABIT,)
    # The call may stand in a helper of another file: then only the step is here.
    triggers = (
        (b"collect", b"backward", b".step("),
        (b"gc", b"backward", b".step("),
        (b"torch", b"lightning"),
    )
