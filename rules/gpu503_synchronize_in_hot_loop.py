from __future__ import annotations

from collections.abc import Iterator

from gpulint.rules._hot import Habit, HotCall, HotRule

from gpulint.analysis.asked import Asked
from gpulint.analysis.domain.values import UNKNOWN
from gpulint.analysis.evaluate.weights import SMALL, weight
from gpulint.analysis.queries.waits import waits
from gpulint.analysis.syntax.nodes import argument
from gpulint.answers import Answer, Question, minor, refuted
from gpulint.claims import Claim
from gpulint.rule import Cost


def _meant(asked: Asked, made: HotCall) -> Iterator[Answer]:
    return waits(asked.evaluator, asked.steps, made.call, made.frame, made.repeats)


def _kept(asked: Asked, made: HotCall) -> str:
    """Whoever calls it from out of sight may measure what runs here."""
    outer = made.repeats.frame.function
    seen = outer.is_module or asked.evaluator.callers(outer)
    return "" if seen else "a caller that is not seen may read a clock after it"


def _meant_to_save(asked: Asked, made: HotCall) -> Iterator[Answer]:
    """Only what is saved in every step is more than whoever reads it may want."""
    if made.every != 1:
        yield refuted(Question.MEANT, "somebody has chosen how often it is saved")
    given = argument(made.call, 0, "obj")
    saved = asked.evaluator.value_of(given, made.frame) if given is not None else UNKNOWN
    entries = [one for _, one in saved.parts or ()] if saved.kind == "dict" else [saved]
    weights = [one for one in entries if one.kind in ("module", "state")]
    if not weights:
        yield refuted(Question.SIZE, "no weights of a network are seen in what it saves")
    if sum(weight(asked.evaluator, one).least for one in weights) < SMALL:
        yield minor(Question.SIZE, "how large what is saved is, the code does not say")


_SAVING = Habit(
    "saves",
    "has the training wait until all weights are copied to the host and written",
    "only the last of them is read, or those of every so many steps: save once a phase, or every so many steps",
    Cost(
        "time in every step, the more of it the larger the network is",
        "336 ms a step instead of 20.5 ms for a 4-layer language model on a local disk; H200, torch 2.11",
    ),
    slowdown=16.4,
    meant=_meant_to_save,
    kept=lambda asked, made: "what reads the file may want each of them",
)
_HABIT = Habit(
    "synchronizes",
    "makes the host wait and frees nothing",
    "the host cannot prepare the next step while the GPU works on this one",
    Cost(
        "time in every step: what the host could have prepared meanwhile",
        "25.7 ms a step instead of 20.5 ms where the host works that much longer; H200, torch 2.11",
    ),
    slowdown=1.25,
    meant=_meant,
    kept=_kept,
)


class SynchronizeInHotLoop(HotRule):
    """
    ## What it does
    Finds `torch.cuda.synchronize()` in every step of a training or inference loop that measures no time and uses no
    streams of its own. In an evaluation it is a note, and in every so many steps, with that part of the cost, as long as that
    is a hundredth of a step or more.

    It also finds `torch.save()` of a network's weights in every step of a training: a note where nothing shows that the network is large.

    ## Why is this bad
    The host runs ahead of the GPU and prepares the next step meanwhile. After a synchronisation it starts when the GPU
    has finished, so data loading and launching no longer overlap with the computation. It frees no memory.

    ## What it costs
    What the host could have done meanwhile. With 5 ms of work of the host a step of a 4-layer language model took 25.7
    ms instead of 20.5 ms, with 10 ms 30.7 ms instead of 20.5 ms. Without any: 20.74 instead of 20.66 ms. The peak of
    memory is 2.39 GiB either way (NVIDIA H200, torch 2.11). With all its weights saved in every step, on a local disk, it took 336 ms, and a
    step of a 16-layer MLP 109 ms instead of 2.8 ms.

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
        torch.cuda.synchronize()
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
    Work on one stream is done in order with or without the host waiting for it, and what reads a value on the host
    waits by itself: safe where every caller is in sight and none reads a clock. Unsafe where a caller that is not seen may
    measure what runs here; where that is one step alone, the finding is a doubt.
    """

    code = "GPU503"
    name = "synchronize-in-hot-loop"
    runtime_claim = Claim("time", ("torch.cuda.synchronize", "torch.save"), device_only=True)
    habits = (_HABIT, _SAVING)
    # The call may stand in a helper of another file: then only the step is here.
    triggers = ((b"synchronize", b"save", b"backward", b".step("), (b"cuda", b"torch", b"lightning"))
