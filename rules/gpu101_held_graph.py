from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpulint.analysis.facts import FileFacts, Hold
from gpulint.analysis.values import LARGE, MAYBE, MIXED, SCALAR, UNSURE_GRAD, Grad, Kind
from gpulint.findings import Severity
from gpulint.rule import Option, RelatedNode, Repair, Replace, Report, Rule

_LIVE_COST = "every activation behind it, for each iteration (925 MB a step for a 4-layer language model; H200, torch 2.11)"
_FREED_COST = "0 to 512 B a step on the GPU, and about 1.3 kB of host memory per autograd node and step (H200, torch 2.11)"
_KEPT_COST = "512 B a call where backward follows, every activation behind it where none does (H200, torch 2.11)"
_RETAINED_COST = (
    "the tensors its graph still saves, each iteration (34 MiB a step for an 8-layer MLP; H200, torch 2.11)"
)


class HeldGraph(Rule):
    """
    ## What it does
    Finds values with an autograd graph that outlive their iteration: a loss added to a running total, appended to
    a list, put into a dict, or handed to a meter that keeps it.

    ## Why is this bad
    A tensor keeps the graph that made it. Held across iterations, so is everything the graph saved. Where no
    backward goes through the value (evaluation without `no_grad`), that is every activation of every batch: an
    *error*. Where `backward()` has freed the graph's buffers, its nodes still pile up in host memory, and a running
    total becomes one ever deeper graph: a *warning*.

    `.cpu()`, `.to()`, `.clone()`, `.float()` and indexing keep the graph. `.item()`, `.detach()` and `float()` do not.

    ## What it costs
    Per step, on an NVIDIA H200 with torch 2.11 (4-layer transformer language model, batch 16 × 256):

    | held | GPU | host |
    |---|---|---|
    | loss, no backward | 925 MB | |
    | loss, after `backward()`, summed | 0 B | 21 kB |
    | loss, after `backward()`, appended | 512 B | |
    | loss, after `backward(retain_graph=True)` (8-layer MLP) | 34 MiB | |
    | `loss.detach()`, appended | 512 B | 0 |
    | `loss.item()` | 0 B | 0 |

    ## Example
    ```python
    import torch
    from torch import nn

    model = nn.Linear(8, 2)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def train(loader):
        total = 0.0
        for inputs, targets in loader:
            loss = criterion(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss
        print(total / len(loader))
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn

    model = nn.Linear(8, 2)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def train(loader):
        total = 0.0
        for inputs, targets in loader:
            loss = criterion(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(total / len(loader))
    ```

    ## Fix safety
    `.item()` is offered, as safe, where the value is a scalar and every use of what holds it is a number's. Elsewhere
    `.detach()`, which keeps the type, is offered as safe. For whole outputs `.detach().cpu()` is offered as unsafe:
    later code sees a tensor on another device.

    ## Options
    `style`: `"auto"` (default) as above, or `"detach"` to never insert `.item()`, which waits for the GPU.
    """

    code = "GPU101"
    name = "held-graph"
    severity = Severity.WARNING
    triggers = (
        (b"torch", b"lightning", b"accelerate", b"deepspeed"),
        (b"backward", b".eval()", b"training_step", b"nn.", b"_step(", b"criterion"),
        (b"+=", b"append", b"extend", b"insert", b"] =", b"+ ", b".update(", b".add", b".log"),
        (b"for ", b"while ", b"self."),
    )
    options = (Option("style", "auto", ("auto", "detach"), "how a held scalar is fixed"),)

    def check(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Report]:
        for hold in facts.holds():
            state = _claim(hold, facts)
            if state is not None:
                yield _report(facts, hold, state, options.get("style", "auto"))


def _claim(hold: Hold, facts: FileFacts) -> str | None:
    """Which claim the facts bear: "live", "freed", "retained", or none."""
    value = hold.value
    if value.kind is not Kind.GRAPH or value.has(MAYBE) or value.has(MIXED) or hold.consumed or hold.bounded:
        return None
    if not any(site.what in ("forward", "loss") for site in value.sites):
        return None
    if hold.how == "add" and hold.grad is Grad.DISABLED:
        return None
    if hold.fed_back or (hold.birth_loop is not None and hold.birth_loop.steps):
        return None
    if hold.state in ("freed", "retained"):
        steps = not hold.loops or any(loop.steps or loop.over_data for loop in hold.loops)
        return hold.state if steps else None
    if hold.state != "live" or value.has(UNSURE_GRAD) or facts.is_test:
        return None
    if hold.evaluating and hold.inference:
        return "live"
    if hold.in_module and hold.never_reset and hold.container and not hold.returned and not hold.escaped:
        return "kept"
    local = hold.holder_kind == "variable" and not hold.returned and not hold.escaped
    return "live" if local and hold.inference and hold.loops else None


def _report(facts: FileFacts, hold: Hold, state: str, style: str) -> Report:
    what = facts.source(hold.leaves[0]) if hold.leaves else "a value"
    where = f"`{hold.holder}`"
    verb = "adds up" if hold.how == "add" or (hold.keep is not None and hold.keep.how == "add") else "keeps"
    related: tuple[RelatedNode, ...] = ()
    if hold.keep is not None:
        line = RelatedNode(
            f"`{hold.keep.function.qualname}` keeps it here",
            hold.keep.stmt.node,
            hold.keep.filename,
            hold.keep.row,
        )
        related = (line,)
    graph, cost, severity = {
        "live": ("its autograd graph, which no backward frees", _LIVE_COST, Severity.ERROR),
        "freed": ("its autograd graph", _FREED_COST, Severity.WARNING),
        "kept": ("its autograd graph, call after call", _KEPT_COST, Severity.WARNING),
        "retained": ("its autograd graph with saved tensors", _RETAINED_COST, Severity.ERROR),
    }[state]
    message = f"{where} {verb} `{what}` across iterations together with {graph}"
    return Report(hold.node, message, _reason(hold, state), cost, severity, _repair(hold, style), related)


def _reason(hold: Hold, state: str) -> str:
    if state == "live":
        mode = "in an evaluation with grad enabled" if hold.evaluating else "with grad enabled"
        return f"graph live: made {mode}, and no backward goes through it before the next iteration"
    if state == "retained":
        return "graph kept after backward: retain_graph, create_graph or activation checkpointing leaves saved tensors in it"
    return "graph freed: backward released the saved tensors, the graph's nodes stay as long as the value is held"


def _repair(hold: Hold, style: str) -> Repair | None:
    from gpulint.nodes import method_chain

    if not hold.leaves:
        return None
    scalar = hold.value.has(SCALAR)
    if scalar and hold.number_uses and style == "auto":
        methods: tuple[str, ...] = ("item",)
    elif hold.value.has(LARGE) and hold.container and not scalar:
        methods = ("detach", "cpu")
    else:
        methods = ("detach",)
    changes = tuple(Replace(leaf.node, method_chain(leaf.node, methods)) for leaf in hold.leaves)
    call = "".join(f".{method}()" for method in methods)
    return Repair(
        "unsafe" if "cpu" in methods else "safe", f"hold the value without its graph: `{call}`", changes
    )
