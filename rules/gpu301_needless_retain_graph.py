from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gpulint.answers import doubts_of
from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import Cost, Remove, Repair, Report, Rule

if TYPE_CHECKING:
    from gpulint.analysis.file.asking import FileFacts
    from gpulint.analysis.file.facts import Backward, FunctionFacts
    from gpulint.answers import Considered


class NeedlessRetainGraph(Rule):
    """
    ## What it does
    Finds `backward(retain_graph=True)` where no second backward goes through that graph.

    With a doubt it also tells of the last backward of a function or closure whose graph lives on with what is returned, or
    with what a caller has handed in, and of classes in which every backward keeps its graph. Confidence is medium where
    nothing shows that the graph saves much.

    ## Why is this bad
    `backward()` frees each saved tensor as soon as it is done with it. With `retain_graph=True` all of them stay until
    the last value of the graph is rebound, usually at the next iteration's forward.

    ## What it costs
    1.58 GiB still allocated after the backward, 698 MiB without it, for a 4-layer language model. The peak is 2.39 GiB either
    way (NVIDIA H200, torch 2.11).

    ## Example
    ```python
    import torch
    from torch import nn
    from torchvision.models import resnet50

    model = resnet50()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    for inputs, targets in loader:
        loss = criterion(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
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

    for inputs, targets in loader:
        loss = criterion(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    ```

    ## Fix safety
    Removing the argument changes no gradient: safe where every model in the graph is made in this file from torch's
    own layers or classes seen here, and where all that is made of its graph stays in the function. A model from elsewhere
    may keep state between calls, and code that is not seen, a caller or another method may go backward once more through
    what it is given, gets back or finds in an attribute: there the fix is unsafe.
    """

    code = "GPU301"
    name = "needless-retain-graph"
    severity = Severity.WARNING
    runtime_claim = Claim("retained")
    triggers = ((b"retain_graph",), (b"backward",))
    doubts = True

    def considers(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Considered]:
        from gpulint.rules.detect.lifetimes.last_backwards import last_backwards
        from gpulint.rules.detect.lifetimes.suspicion import considered

        yield from considered(facts.ask(last_backwards))

    def check(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Report]:
        from gpulint.rules.detect.averages.gathering import averages
        from gpulint.rules.detect.lifetimes.last_backwards import last_backwards
        from gpulint.rules.detect.lifetimes.suspicion import told

        from gpulint.analysis.questions.repeats.once import runs_once
        from gpulint.analysis.questions.size.forwards import ForwardSizes

        rows: set[int] = set()
        states = facts.ask(averages)
        explained = {id(item.backward) for function in facts.functions for item in function.carried}
        for function in facts.functions:
            for backward in function.backwards:
                if id(backward) in explained:
                    rows.add(backward.call.row)
                elif _needless(backward) and _stays(function, backward):
                    rows.add(backward.call.row)
                    doubts = (
                        *_let_go(function, backward),
                        *((_NEXT,) if states else ()),
                        *doubts_of(runs_once(backward.function, bool(backward.loops))),
                        *doubts_of(facts.ask(ForwardSizes).of_graph(function.forwards)),
                    )
                    yield _report(facts, backward, doubts)
        yield from told(facts.ask(last_backwards), rows)


_NEXT = "something here is updated with its graph, and the next backward may go through that"


def _needless(backward: Backward) -> bool:
    return (
        backward.retain
        and backward.retain_argument
        and not backward.create_graph
        and not backward.again
        and not backward.autograd_grad
        and backward.retain_is_constant
    )


def _stays(function: FunctionFacts, backward: Backward) -> bool:
    """Whether the graph is there for some more: until a next iteration, in an attribute, beside an optimizer's step."""
    return bool(backward.loops) or function.steps > 0 or (backward.path or "").startswith("self.")


def _let_go(function: FunctionFacts, backward: Backward) -> tuple[str, ...]:
    """The doubt whether that matters: the peak was before the backward, and where the function makes no other graph after
    it and ends, the next one is made when this is gone."""
    if backward.loops or (backward.path or "").startswith("self."):
        return ()
    rows = [forward.call.row for forward in function.forwards] + [
        other.call.row for other in function.backwards
    ]
    if any(row > backward.call.row for row in rows):
        return ()
    return (f"the graph is let go of where `{function.function.name}` ends, before another is made",)


def _report(facts: FileFacts, backward: Backward, doubts: tuple[str, ...]) -> Report:
    return Report(
        backward.call,
        f"`{facts.source(backward.call)}` keeps the whole graph, and no second backward goes through it",
        "the saved tensors stay until the loss is rebound, usually during the next forward",
        Cost(
            "all that the graph has saved, after the backward as before it",
            "1.58 GiB against 698 MiB allocated after the backward of a 4-layer language model; H200, torch 2.11",
        ),
        repair=lambda: _repair(backward),
        doubts=doubts,
        subject=facts.called(backward.call),
    )


def _repair(backward: Backward) -> Repair | None:
    node = backward.retain_node
    if node is None:
        return None
    return Repair.unless(backward.may_come_again, "remove `retain_graph=True`", (Remove(node),))
