from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gpulint.rules._no_grad import no_grad
from gpulint.rules.detect.misuse import GradModeMisuse

from gpulint.answers import doubts_of
from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import Change, Cost, RelatedNode, Remove, Repair, Replace, Report, Rule, Wrap

if TYPE_CHECKING:
    from gpulint.rules.detect.idle_freezing import IdleFreezing
    from gpulint.rules.detect.lifetimes.suspicion import Suspicion

    from gpulint.analysis.code import ir
    from gpulint.analysis.file.asking import FileFacts
    from gpulint.answers import Considered

_LOSES_GRAPH = "code that counts on the graph of a result in that block breaks"

_WHY = {
    "bare": "`{name}()` as a statement makes a context manager and drops it: grad mode stays as it was",
    "uncalled": "`with {name}:` is given the class, not a context manager, and raises as soon as it is reached",
    "and": "`and` and `or` choose one of two contexts: `{name}()` is never entered",
    "class": "`no_grad` on the class `{name}` covers its constructor only; its methods run with grad enabled",
    "async": "the decorator of `{name}` covers making the coroutine, not running it: its body runs with grad enabled",
    "volatile": "`volatile=True` has had no effect since torch 0.4: the forward saves its activations",
}


class IneffectiveGradMode(Rule):
    """
    ## What it does
    Finds grad modes that never take effect: `torch.no_grad()` as a statement of its own, `with torch.no_grad:` without
    the call, `with torch.no_grad() and …:`, the decorator on a class or on an `async def`, and `volatile=True`.

    So are networks frozen in name only: `net.requires_grad = False`, where `net` is a module, sets an attribute that nothing
    reads, and so does a misspelt `p.require_grad = False`. `net.requires_grad_(False)` freezes.

    ## Why is this bad
    The code reads as if nothing were recorded, and every activation is. `no_grad` works as a context manager or as a
    decorator of a function; made and dropped, it does nothing.

    ## What it costs
    What `no_grad` would have saved: a forward of a 4-layer language model peaks at 1.56 GiB with grad and at 1.15 GiB
    under `no_grad`, 1.36 times as much (NVIDIA H200, torch 2.11).

    A head trained with Adam on 8 linear layers of width 1,024 that are frozen in name only peaks at 162.32 MiB, on ones that
    are frozen at 38.19 MiB, and holds 128.28 instead of 32.19 MiB after a step. A network that is trained through 8 such
    layers holds 128.12 instead of 96.09 MiB: the gradients of their weights.

    ## Example
    ```python
    import torch

    def predict(model: torch.nn.Module, inputs):
        torch.no_grad()
        return model(inputs)
    ```

    ## Use instead
    ```python
    import torch

    def predict(model: torch.nn.Module, inputs):
        with torch.no_grad():
            return model(inputs)
    ```

    ## Fix safety
    Adding the missing call to `with torch.no_grad:` is safe, except where something catches the error that it raises now.
    Putting the rest of the block under `with torch.no_grad():` is unsafe: results lose their graph, as intended, and code
    that counts on it breaks. That is also the cure for `volatile=True`: dropped alone it would leave grad on. Nothing is
    offered where that code calls `backward()`, at module level, nor for a `volatile=True` under an `if`. Nor for what is frozen
    in name only: to freeze it changes what is trained.
    """

    code = "GPU204"
    name = "ineffective-grad-mode"
    severity = Severity.WARNING
    runtime_claim = Claim("guard")
    doubts = True
    triggers = (
        (b"torch",),
        (
            b"no_grad:", b"inference_mode:", b" torch.no_grad()\n", b" torch.no_grad() ", b" no_grad()\n", b" no_grad() ",
            b"grad()\nclass", b"grad\nclass", b"mode()\nclass", b"mode\nclass", b"\ntorch.no_grad()", b"\tno_grad()", b"\r\n",
            b"\ttorch.no_grad()", b" inference_mode()", b" torch.inference_mode()", b"volatile", b"async def", b"enable_grad()",
            b"th.no_grad()", b"torch.no_grad\n", b"inference_mode(True)", b"grad()  #", b".requires_grad = False",
            b".requires_grad=False", b".require_grad", b".requires_grads", b".required_grad", b"_gradient = False", b"_gard",
        ),
    )  # fmt: skip

    def considers(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Considered]:
        from gpulint.rules.detect.idle_freezing import idle_freezings
        from gpulint.rules.detect.lifetimes.suspicion import considered

        yield from considered(_frozen_in_name(facts, idle) for idle in facts.ask(idle_freezings))

    def check(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Report]:
        from gpulint.rules.detect.idle_freezing import idle_freezings
        from gpulint.rules.detect.lifetimes.suspicion import told
        from gpulint.rules.detect.misuse import grad_mode_misuses

        from gpulint.analysis.questions.grad.old_torch import predates_no_grad

        old = doubts_of(facts.ask(predates_no_grad))
        for misuse in facts.ask(grad_mode_misuses):
            yield Report(
                misuse.at,
                _WHY[misuse.what].format(name=misuse.name),
                "use it as `with torch.no_grad():` around the code, or as the decorator of the function that runs it",
                Cost(
                    "every activation of what runs here, as without this line",
                    "1.36 times the forward's peak, 1.56 against 1.15 GiB for a 4-layer language model; H200, torch 2.11",
                ),
                unless_guarded=misuse.entries,
                doubts=(*old, *misuse.doubts) if misuse.what == "volatile" else (),
                related=tuple(RelatedNode("and so has this", other) for other in misuse.also),
                subject=misuse.name,
                repair=lambda misuse=misuse: _repair(facts, misuse),  # type: ignore[misc]
            )
        yield from told((_frozen_in_name(facts, idle) for idle in facts.ask(idle_freezings)), set())


def _frozen_in_name(facts: FileFacts, idle: IdleFreezing) -> Suspicion:
    from gpulint.rules.detect.lifetimes.suspicion import Suspicion

    text = facts.source(idle.at)
    why = (
        "torch has no attribute of this name"
        if idle.is_misspelt
        else "a module has no attribute of this name"
    )
    return Suspicion(
        idle.at,
        text,
        f"`{text} = False` freezes nothing: {why}, and the parameters require grad as before",
        "freeze with `.requires_grad_(False)`, which a module hands on to its parameters",
        Cost(
            "gradients of all the weights; where nothing before them wants a gradient the activations, and the optimizer's states",
            "162.32 MiB against 38.19 MiB at the peak for a head on 8 linear layers; H200, torch 2.11",
        ),
        idle.answers,
    )


def _repair(facts: FileFacts, misuse: GradModeMisuse) -> Repair | None:
    import libcst as cst

    from gpulint.fix.nodes import no_grad_with

    if misuse.what == "uncalled":
        called = cst.Call(misuse.at.node)
        why = "the code beneath has never run: what it raises is caught" if misuse.guarded else ""
        return Repair.unless(why, "call it", (Replace(misuse.at.node, called),))
    if not misuse.rest or misuse.stmt is None or _goes_back(misuse.rest):
        return None
    lines = tuple(statement.line for statement in misuse.rest)
    why = _LOSES_GRAPH
    changes: tuple[Change, ...]
    if misuse.what == "volatile":
        spelled = no_grad(facts)
        if spelled is None:
            return None
        name, imports = spelled
        changes = (*_volatile_arguments(misuse.rest), Wrap(lines, no_grad_with(name)), *imports)
        why = f"{_LOSES_GRAPH}, and a torch that knows `volatile` has no `no_grad`"
    elif misuse.what == "bare" and isinstance(misuse.at.node, cst.Call):
        name = misuse.name
        changes = (Remove(misuse.stmt.node), Wrap(lines, no_grad_with(name)))
    else:
        return None
    return Repair("unsafe", f"run the rest of the block under `{name}()`", changes, why)


def _goes_back(block: tuple[ir.Stmt, ...]) -> bool:
    from gpulint.analysis.code import ir
    from gpulint.analysis.torch.backward import runs_backward

    return any(runs_backward(call.method) for _, call in ir.calls(list(block)))


def _volatile_arguments(block: tuple[ir.Stmt, ...]) -> tuple[Remove, ...]:
    """Every `volatile=True` of the block: under no_grad none of them is left to say."""
    from gpulint.analysis.code import ir

    return tuple(
        Remove(argument)
        for _, call in ir.calls(list(block))
        if call.keyword("volatile") is not None
        for argument in call.node.args
        if argument.keyword is not None and argument.keyword.value == "volatile"
    )
