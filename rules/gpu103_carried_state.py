from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import starts_none
from gpulint.analysis.code.slots import treats_as_table
from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import Change, Cost, Insert, Remove, Repair, Report, Rule

if TYPE_CHECKING:
    from gpulint.analysis.file.asking import FileFacts
    from gpulint.analysis.file.facts import Carried, FunctionFacts
    from gpulint.analysis.file.program import FileAnalysis


class CarriedState(Rule):
    """
    ## What it does
    Finds recurrent state that goes from one training iteration into the next without `detach()`. So do inputs
    that a loop changes by their own gradient, as an attack does: those that are never cut are found as well. Of a table of
    results that goes through a network out of sight it tells with a doubt: the network may only fill it.

    ## Why is this bad
    The state carries the graph of the iteration that made it, which carries the one before: the graph grows with
    every batch. Without `retain_graph=True` the second backward fails; with it, memory and step time grow until the
    GPU is full.

    ## What it costs
    An LSTM that carries its state with `retain_graph=True` grew by 7.06 MiB on the GPU and 11.3 KiB on the host in every
    step, and the median of its first steps took 7.89 ms; detached, 0 B on the GPU and 2.05 ms (NVIDIA H200, torch 2.11).

    ## Example
    ```python
    import torch
    from torch import nn

    rnn = nn.GRU(8, 16)
    head = nn.Linear(16, 8)
    criterion = nn.MSELoss()
    optimizer = torch.optim.SGD(rnn.parameters(), lr=0.1)

    def train(chunks):
        hidden = torch.zeros(1, 4, 16)
        for inputs, targets in chunks:
            output, hidden = rnn(inputs, hidden)
            loss = criterion(head(output), targets)
            optimizer.zero_grad()
            loss.backward(retain_graph=True)
            optimizer.step()
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn

    rnn = nn.GRU(8, 16)
    head = nn.Linear(16, 8)
    criterion = nn.MSELoss()
    optimizer = torch.optim.SGD(rnn.parameters(), lr=0.1)

    def train(chunks):
        hidden = torch.zeros(1, 4, 16)
        for inputs, targets in chunks:
            hidden = hidden.detach()
            output, hidden = rnn(inputs, hidden)
            loss = criterion(head(output), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    ```

    ## Fix safety
    The fix cuts the graph of every state that the round hands on, before it is used, and drops `retain_graph=True` where that was its only reason. It is
    unsafe: gradients no longer flow into earlier iterations, which is what truncated backpropagation through time means.
    """

    code = "GPU103"
    name = "carried-state"
    severity = Severity.ERROR
    runtime_claim = Claim("drift")
    triggers = ((b"torch", b"lightning"), (b"backward", b".eval()", b"autograd.grad("), (b"for ", b"while "))
    doubts = True

    def check(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Report]:
        for function in facts.functions:
            for carried in function.carried:
                yield _report(facts, function, carried)


def _report(facts: FileFacts, function: FunctionFacts, carried: Carried) -> Report:
    what = facts.source(carried.argument)
    retain = carried.backward is not None and carried.backward.retain
    cost = Cost(
        "the activations of all earlier iterations",
        "7.06 MiB a step for an LSTM, and a step ever slower; H200, torch 2.11",
    )
    if carried.perturbed:
        reason = (
            "the gradient is asked for this iteration's input: nothing frees the operations that led to it"
        )
        cost = Cost("what these operations save of the input, for each earlier iteration")
    elif retain:
        reason = "retain_graph=True keeps every earlier iteration's activations alive"
    elif carried.backward is not None:
        reason = (
            "the next backward would go through the graph of the iteration before, which is freed: it fails"
        )
    else:
        reason = (
            "grad is enabled in this evaluation: each graph is the input of the next, and none is ever freed"
        )
    return Report(
        carried.call,
        f"`{what}` carries its autograd graph from one iteration into the next",
        reason,
        cost,
        repair=lambda: _repair(function, carried),
        doubts=(carried.doubt,) if carried.doubt else (),
        subject=carried.path,
    )


def _repair(function: FunctionFacts, carried: Carried) -> Repair | None:
    """Cut every state that the round hands to the next: with one of them left attached nothing is freed. Where no
    backward runs, the results keep the graphs as well, and the cure is no_grad."""
    if carried.backward is None and not carried.perturbed:
        return None
    together = [
        other
        for other in function.carried
        if other.loop is carried.loop and other.backward is carried.backward
    ]
    changes: list[Change] = []
    seen: set[tuple[int, str]] = set()
    for other in together:
        cut = _cut(other)
        if cut is None:
            return None
        if (id(cut.anchor), other.path) not in seen:
            seen.add((id(cut.anchor), other.path))
            changes.append(cut)
    backward = carried.backward
    if backward is not None and backward.retain_node is not None and carried.only_reason:
        changes.append(Remove(backward.retain_node))
    why = "gradients no longer flow into earlier iterations"
    return Repair("unsafe", "cut the graph before the state is used again", tuple(changes), why)


def _filling(carried: Carried) -> list[ir.Function]:
    """The functions that may put something in the place of the state: of an object's attribute, all its methods."""
    function = carried.function
    home: FileAnalysis = function.home
    info = home.class_of(function)
    own = info is not None and function.params and carried.path.startswith(f"{function.params[0].name}.")
    methods = (
        [method for part in info.lineage() for method in part.cls.methods.values()] if info and own else []
    )
    return [function, *(method for method in methods if method is not function)]


def _cut(carried: Carried) -> Insert | None:
    from gpulint.fix.nodes import assign

    path = carried.path
    if "[" in path or "(" in path or treats_as_table(carried.function, path):
        return None
    begins = [starts_none(function, path) for function in _filling(carried)]
    parts_none = any(parts for _, parts in begins)
    part = "None if part is None else part.detach()" if parts_none else "part.detach()"
    nested = carried.nested or parts_none
    expression = f"tuple({part} for part in {path})" if nested else f"{path}.detach()"
    if any(whole for whole, _ in begins):
        expression = f"None if {path} is None else {expression}"
    return Insert(carried.stmt.line, assign(path, expression), after=False)
