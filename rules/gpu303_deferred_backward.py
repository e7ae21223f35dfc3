from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gpulint.answers import doubts_of
from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import Cost, RelatedNode, Report, Rule

if TYPE_CHECKING:
    from gpulint.analysis.file.asking import FileFacts
    from gpulint.analysis.file.facts import DeferredBackward, FunctionFacts


class DeferredBackwardRule(Rule):
    """
    ## What it does
    Finds losses of several micro-batches that are summed in a loop, with one backward after it. Rounds that go on from what
    the one before has computed, as over the frames of one sequence, need that one backward, and are let be.
    Confidence is medium where nothing shows that a round's graph saves much, or after how many rounds the backward comes,
    `if (step + 1) % every == 0`; and low where that is an option, by default 1.

    ## Why is this bad
    Gradients add up by themselves: a backward per micro-batch gives the same gradients. Summing first keeps the
    activations of all micro-batches alive at once, which is the memory that accumulation was meant to save.

    ## What it costs
    Four micro-batches of a 4-layer language model peak at 1.66 GiB with one backward for their sum, and at 1.16 GiB with a
    backward each: 30 % less. Four backwards take a little longer, 29.3 instead of 26.7 ms a step (NVIDIA H200, torch 2.11).

    ## Example
    ```python
    import torch
    from torch import nn
    from torchvision.models import resnet50

    model = resnet50()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(micro_batches):
        optimizer.zero_grad()
        total = 0.0
        for inputs, targets in micro_batches:
            loss = criterion(model(inputs), targets)
            total += loss
        total.backward()
        optimizer.step()
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn
    from torchvision.models import resnet50

    model = resnet50()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(micro_batches):
        optimizer.zero_grad()
        total = 0.0
        for inputs, targets in micro_batches:
            loss = criterion(model(inputs), targets)
            loss.backward()
            total += loss.detach()
        optimizer.step()
    ```

    ## Fix safety
    The fix moves the backward into the loop. It is unsafe, because gradients are then the sum over batches even where
    code between the loop and the backward would have stopped it, and it is only offered where the sum has no other
    use and no `zero_grad()` stands between the loop and its backward.
    """

    code = "GPU303"
    name = "deferred-backward"
    severity = Severity.WARNING
    runtime_claim = Claim("deferred")
    triggers = ((b"backward",), (b"for ", b"while "), (b"+=", b"append", b"+ ", b"add_("))
    doubts = True

    def check(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Report]:
        for function in facts.functions:
            for deferred in function.deferred:
                yield _report(facts, function, deferred)


def _report(facts: FileFacts, function: FunctionFacts, deferred: DeferredBackward) -> Report:
    from gpulint.rules.detect.deferred_repair import repair

    from gpulint.analysis.code import ir
    from gpulint.analysis.questions.outlives.periods import may_be_of_one_round
    from gpulint.analysis.questions.size.forwards import ForwardSizes

    hold = deferred.hold
    loop = hold.rounds.loops[-1].stmt if hold.rounds.loops else None
    rounds = (
        may_be_of_one_round(facts.analysis, hold.function, loop, hold.place.holder)
        if isinstance(loop, (ir.For, ir.While))
        else None
    )
    what = facts.source(hold.leaves[0]) if hold.leaves else "the losses"
    return Report(
        hold.at,
        f"`{hold.place.holder}` sums `{what}` over several batches for one backward: all their activations are alive at once",
        "gradients accumulate by themselves: a backward for each batch gives the same sum",
        Cost(
            "the activations of all batches at once, instead of one's",
            "44 % more at the peak for four micro-batches, 1.66 against 1.16 GiB for a 4-layer language model; H200, torch 2.11",
        ),
        repair=lambda: repair(facts, deferred),
        subject=hold.place.holder,
        related=(RelatedNode("the one backward", deferred.backward.call),),
        doubts=(
            *((deferred.doubt,) if deferred.doubt else ()),
            *doubts_of(() if rounds is None else (rounds,)),
            *doubts_of(facts.ask(ForwardSizes).of_graph(function.forwards)),
        ),
    )
