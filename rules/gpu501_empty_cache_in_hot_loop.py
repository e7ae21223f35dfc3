from __future__ import annotations

from gpulint.rules._hot import Habit, HotCall, HotRule

from gpulint.analysis.asked import Asked
from gpulint.analysis.queries.intended import imported
from gpulint.claims import Claim
from gpulint.rule import Cost


def _kept(asked: Asked, made: HotCall) -> str:
    """A library that takes memory of the same card beside torch."""
    library, by = imported(asked.evaluator, asked.file, "device-libraries")
    clause = f"`{library}` takes memory of the same GPU, which torch's cache would keep from it"
    return "" if by is None else clause


_HABIT = Habit(
    "empties cache",
    "frees nothing the program holds and slows it down",
    "the next step takes the same memory from the driver again; allocated memory and its peak stay as they are",
    Cost(
        "time in every step, and no memory gained",
        "1.11 times the step time of a 4-layer language model, 1.1 times that of a 16-layer MLP; H200, torch 2.11",
    ),
    slowdown=1.11,
    kept=_kept,
)


class EmptyCacheInHotLoop(HotRule):
    """
    ## What it does
    Finds `torch.cuda.empty_cache()` called in every step of a training loop. In every so many steps,
    `if i % 5 == 0`, it is a note with that part of the cost, as long as that is a hundredth of a step or more, and in an
    evaluation, too. In other loops it is told with a doubt: a round may take so long that the call does not matter.

    ## Why is this bad
    The cache holds memory that PyTorch is about to use again. Giving it back makes the driver free it, synchronising
    the device, and the next step asks for it anew. It never lowers `memory_allocated`, and it did not lower the peak.

    ## What it costs
    A step of a 4-layer language model took 23.6 instead of 21.3 ms, 1.11 times as long, one of a 16-layer MLP 2.70 ms
    instead of 2.35 ms, 1.1 times. The peak of allocated memory stayed at 2.39 GiB; that of reserved memory fell from
    3.24 to 2.79 GiB (NVIDIA H200, torch 2.11). Between phases, after validation or a checkpoint, it can help: such
    calls are not reported (GPU406).

    ## Example
    ```python
    import torch
    from torch import nn

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    for inputs in loader:
        loss = model(inputs).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.cuda.empty_cache()
    ```

    ## Use instead
    ```python
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
    Removing the call changes no result: safe. Unsafe just after a `del`, whose memory somebody wants back at once, where the
    program reads how much is reserved, beside libraries that take memory of the same GPU, and in programs of sparse points, whose
    batches differ in size. Nothing is offered where the step calls a helper that does more than clean up. Loops whose rounds are whole
    phases, epochs, rollouts or runs tried again with less, are not reported.
    """

    code = "GPU501"
    name = "empty-cache-in-hot-loop"
    runtime_claim = Claim("time", ("torch.cuda.empty_cache",), device_only=True)
    habits = (_HABIT,)
    # The call may stand in a helper of another file: then only the step is here.
    triggers = ((b"empty_cache", b"backward", b".step("),)
