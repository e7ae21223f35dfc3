from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gpulint.rules.detect.hooks import HookHold, RepeatedHook
from gpulint.rules.detect.lifetimes.suspicion import Suspicion

from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import Cost, RelatedNode, Repair, Replace, Report, Rule

if TYPE_CHECKING:
    from gpulint.analysis.file.asking import FileFacts
    from gpulint.answers import Considered

_WHY = {
    "loop": "the loop registers it in every iteration, on a module that lives on",
    "call": "the function is called for every batch and leaves its hook behind each time",
    "forward": "each forward of the module registers it once more",
}


class HookHolds(Rule):
    """
    ## What it does
    Finds forward hooks that add a module's input or output, with its autograd graph, to a container that nothing
    empties, while a loop runs batches through the module; hooks that do so without a graph, but leave what they keep
    on the device (a *warning*); and hooks that are registered in every step on a module that lives on, and never
    removed.

    With a doubt it also tells of hooks that an object registers on a module which it was given, and drops the handle of:
    they stay, and the object with them, as long as the module lives; of slots that get an activation moved but not cut from
    its graph; of methods that remove the hooks and leave what these have stored; of inputs kept for a backward hook also
    where no backward comes; and of hooks on a node of the graph that hold an object which holds tensors of that graph.

    ## Why is this bad
    An activation that a hook keeps keeps the graph behind it, call after call. A hook that is registered again in
    every step runs once more in every step: what it holds and what it costs grow together.

    ## What it costs
    An 8-layer MLP, batch 512 × 1,024, whose hooks keep the outputs of its activations: 16 MiB more on the GPU and 26.1
    KiB more on the host in every training step; 34 MiB where no backward follows, 16 MiB under `no_grad`. Hooks that
    keep a number: 0 B and 742 B. A hook that is registered in every step: 1.03 KiB on the host, and 2.00 MiB on the GPU
    where its closure holds the batch (NVIDIA H200, torch 2.11).

    ## Example
    ```python
    import torch
    from torch import nn

    activations = []

    def keep(module, args, output):
        activations.append(output)

    def train(model: nn.Module, loader, optimizer):
        model.hidden.register_forward_hook(keep)
        for inputs, targets in loader:
            loss = nn.functional.cross_entropy(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn

    activations = []

    def keep(module, args, output):
        activations.append(output.detach().cpu())

    def train(model: nn.Module, loader, optimizer):
        model.hidden.register_forward_hook(keep)
        for inputs, targets in loader:
            loss = nn.functional.cross_entropy(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    ```

    Where the activation is part of the loss, empty the container in every step. Keep the handle that
    `register_forward_hook` gives, and `handle.remove()` it when the hook has served.

    ## Fix safety
    `.detach().cpu()` is offered as unsafe: later code meets a tensor on another device and without graph. Where the tensors
    are computed with, only `.detach()` is. Nothing is
    offered where a function that mentions the container calls `backward()`. A hook registered again and again has to
    be moved or removed by hand.
    """

    code = "GPU105"
    name = "hook-holds"
    severity = Severity.ERROR
    runtime_claim = Claim("drift")
    triggers = (
        (b"_hook(",),
        (b"register_forward", b"register_full_backward", b"register_backward", b"register_hook"),
    )
    doubts = True

    def considers(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Considered]:
        from gpulint.rules.detect.lifetimes.suspicion import considered

        yield from considered(_suspected(facts))

    def check(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Report]:
        from gpulint.rules.detect.hooks import hook_holds, repeated_hooks
        from gpulint.rules.detect.lifetimes.suspicion import told

        rows: set[int] = set()
        for hold in facts.ask(hook_holds):
            rows.add(hold.stmt.row if hold.filename is None else hold.registration.row)
            yield _holding(facts, hold)
        for repeated in facts.ask(repeated_hooks):
            rows.add(repeated.registration.row)
            yield _repeating(facts, repeated)
        yield from told(_suspected(facts), rows)


def _suspected(facts: FileFacts) -> Iterator[Suspicion]:
    """Where something is left open: hooks that nobody can remove, and what they keep."""
    from gpulint.rules.detect.lifetimes.hook_stores import hook_stores
    from gpulint.rules.detect.lifetimes.left_behind import left_behind
    from gpulint.rules.detect.lifetimes.node_cycles import node_cycles
    from gpulint.rules.detect.lifetimes.undying_hooks import undying_hooks
    from gpulint.rules.detect.lifetimes.uneaten import uneaten

    for detector in (uneaten, hook_stores, left_behind, node_cycles, undying_hooks):
        yield from facts.ask(detector)


def _holding(facts: FileFacts, hold: HookHold) -> Report:
    here = hold.filename is None
    what = facts.source(hold.value) if here else "what it sees"
    related = (
        RelatedNode("the hook is registered here", hold.registration)
        if here
        else RelatedNode(f"`{hold.hook.qualname}` keeps it here", None, hold.filename, hold.row)
    )
    if not hold.graph:
        return Report(
            hold.value if here else hold.registration,
            f"the hook adds `{what}` to `{hold.holder}` at every forward and leaves it on the device",
            f"`{hold.holder}` has every batch's until the function ends"
            if hold.removed
            else f"nothing ever empties `{hold.holder}` while batches run through the module",
            Cost("the activations' own bytes, at every step", "16 MiB for the 8 of an MLP; H200, torch 2.11"),
            Severity.WARNING,
            lambda: _repair(facts, hold),
            (related,),
            subject=hold.holder,
        )
    return Report(
        hold.value if here else hold.registration,
        f"the hook adds `{what}` to `{hold.holder}` at every forward, together with its autograd graph",
        f"nothing ever empties `{hold.holder}`, and batches run through the module with grad enabled",
        Cost(
            "the activation and the graph behind it, at every step",
            "16 to 34 MiB for an 8-layer MLP; H200, torch 2.11",
        ),
        repair=lambda: _repair(facts, hold),
        related=(related,),
        subject=hold.holder,
    )


def _repeating(facts: FileFacts, repeated: RepeatedHook) -> Report:
    method = repeated.registration.method
    return Report(
        repeated.registration,
        f"`{method}` adds one more hook in every step, and none is ever removed",
        _WHY[repeated.why],
        "one more call at every forward, and whatever the hooks' closures hold (2.00 MiB for a batch of 512 × 1,024)",
        Severity.WARNING,
        subject=method,
    )


def _repair(facts: FileFacts, hold: HookHold) -> Repair | None:
    from gpulint.analysis.code import ir
    from gpulint.analysis.questions.device.waiting import nobody_computes_with
    from gpulint.fix.nodes import method_chain

    if hold.trained or hold.filename is not None or isinstance(hold.value, (ir.Seq, ir.Op)):
        return None
    node = hold.value.node
    waits = nobody_computes_with(facts.analysis, hold.holder)
    if not waits and not hold.graph:
        return None
    methods, what = ["cpu"] if waits else [], "move it to the host" if waits else ""
    if hold.graph:
        methods, what = ["detach", *methods], "detach it" + (f" and {what}" if waits else "")
    why = f"what reads `{hold.holder}` may want its graph, and a module that gives several tensors gives a tuple"
    return Repair("unsafe", what, (Replace(node, method_chain(node, methods)),), why)
