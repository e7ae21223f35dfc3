from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpulint.analysis.facts import FileFacts
from gpulint.findings import Severity
from gpulint.rule import Report, Rule


class CreateGraphBackward(Rule):
    """
    ## What it does
    Finds `backward(create_graph=True)` whose gradients nothing lets go of before the iteration ends.

    ## Why is this bad
    The gradients are stored on the parameters together with the graph that made them, and that graph refers to the
    parameters: a reference cycle, which PyTorch itself warns of. The whole graph of the step, activations included,
    stays through the next forward, until `zero_grad()` or, where the model itself is dropped, until the garbage
    collector runs. `torch.autograd.grad` hands the gradients out instead: they go when their names do.

    A second backward through the gradients, as of a gradient penalty, frees most of it: then this is an *info*.

    ## What it costs
    A gradient penalty on a 2-layer MLP, batch 512 × 1,024, whose input requires grad: with `backward(create_graph=True)` the
    step peaks at 136 MiB and leaves 6.00 MiB behind; with `autograd.grad` it peaks at 56 MiB and leaves 0 B (NVIDIA H200,
    torch 2.11).

    ## Example
    ```python
    import torch

    def curvature(model, inputs):
        loss = model(inputs).mean()
        loss.backward(create_graph=True)
        return [(p.grad * torch.randn_like(p)).sum() for p in model.parameters()]
    ```

    ## Use instead
    ```python
    import torch

    def curvature(model, inputs):
        loss = model(inputs).mean()
        grads = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
        return [(g * torch.randn_like(g)).sum() for g in grads]
    ```

    ## Fix safety
    No fix is offered: what reads the gradients has to be rewritten. Where an optimizer reads them from `p.grad`, call
    `optimizer.zero_grad()` after its step, not before the next backward: then the graph is gone before the next
    forward, and nothing is reported.
    """

    code = "GPU302"
    name = "create-graph-backward"
    severity = Severity.WARNING
    facts_only = True
    triggers = ((b"create_graph=True", b"create_graph = True"), (b"backward",))

    def check(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Report]:
        if facts.is_test:
            return
        for found in facts.habits.create_graphs:
            text = facts.source(found.call)
            if found.again:
                message = f"`{text}` ties the parameters to their gradients in a reference cycle"
                reason = (
                    "a later backward frees most of the graph; the cycle stays until the gradients are reset"
                )
                cost = "136 instead of 56 MiB at the peak, 6.00 MiB a step kept by an input that requires grad (2-layer MLP; H200, torch 2.11)"
                yield Report(found.call.node, message, reason, cost, Severity.INFO)
            else:
                message = f"`{text}` keeps the step's whole graph on the parameters' gradients, in a reference cycle"
                reason = "nothing after it in this iteration resets the gradients: the graph lives into the next forward"
                cost = "every activation and every gradient, until the gradients are reset"
                yield Report(found.call.node, message, reason, cost)
