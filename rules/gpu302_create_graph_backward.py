from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gpulint.answers import doubts_of
from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import Cost, Report, Rule

if TYPE_CHECKING:
    from gpulint.analysis.file.asking import FileFacts
    from gpulint.answers import Considered


class CreateGraphBackward(Rule):
    """
    ## What it does
    Finds `backward(create_graph=True)` whose gradients nothing lets go of before the iteration ends.

    So is `torch.autograd.grad(…, create_graph=True)`, and the call of a helper that does it, where only numbers and pictures
    are made of the gradients: nobody goes through the graph that it makes of them. Confidence is medium where nothing shows
    that the network saves much.

    ## Why is this bad
    The gradients are stored on the parameters together with the graph that made them, and that graph refers to the
    parameters: a reference cycle, which PyTorch itself warns of. The whole graph of the step, activations included,
    stays through the next forward, until `zero_grad()` or, where the model itself is dropped, until the garbage
    collector runs. `torch.autograd.grad` hands the gradients out instead: they go when their names do.

    A second backward through the gradients, as of a gradient penalty, frees most of it: then this is an *info*. What a
    constructor or a script runs once is told in doubt.

    ## What it costs
    An 8-layer MLP, batch 512 × 1,024 (NVIDIA H200, torch 2.11). An optimizer reads the gradients:

    | | held after the step | peak | growth a step |
    |---|---|---|---|
    | `zero_grad()` after the step | 32 MiB | 134 MiB | 0 B |
    | `zero_grad()` before the next backward | 130 MiB | 166 MiB | 0 B |
    | no `zero_grad()` | | 996 MiB | 66 MiB |
    | `autograd.grad` | 64 MiB | 164 MiB | 0 B |

    A model that is dropped after such a backward leaves 130 MiB behind, until the garbage collector runs; after a plain
    one 0 B. Where a second backward follows, as of a gradient penalty, the step peaks at 172 MiB, with `autograd.grad`
    at 166 MiB, and neither grows; but an input that requires grad keeps 6.00 MiB a step of a 2-layer MLP, 0 B with
    `autograd.grad`.

    The gradient of an 8-layer MLP for its input of 65,536 × 1,024, which is then detached, peaks at 8.03 GiB with
    `create_graph=True` and at 4.28 GiB without; 8.03 GiB stay until the gradient's name goes, without it 544 MiB.

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
    runtime_claim = Claim("cycle")
    doubts = True
    triggers = ((b"create_graph=True", b"create_graph = True"), (b"backward", b"autograd"))

    def considers(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Considered]:
        from gpulint.rules.detect.lifetimes.cut_gradients import cut_gradients
        from gpulint.rules.detect.lifetimes.suspicion import considered

        yield from considered(facts.ask(cut_gradients))

    def check(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Report]:
        from gpulint.rules.detect.lifetimes.cut_gradients import cut_gradients
        from gpulint.rules.detect.lifetimes.suspicion import told
        from gpulint.rules.detect.misuse import create_graphs

        from gpulint.analysis.questions.repeats.once import runs_once

        for found in facts.ask(create_graphs):
            doubts = doubts_of(runs_once(found.function, found.in_loop))
            text, subject = facts.source(found.call), facts.called(found.call)
            if found.again:
                message = f"`{text}` ties the parameters to their gradients in a reference cycle"
                reason = (
                    "a later backward frees most of the graph; the cycle stays until the gradients are reset"
                )
                cost = Cost(
                    "what the cycle holds, until the gradients are reset",
                    "136 instead of 56 MiB at the peak, 6.00 MiB a step kept by an input that requires grad, for a 2-layer MLP; H200, torch 2.11",
                )
                yield Report(found.call, message, reason, cost, Severity.INFO, subject=subject, doubts=doubts)
            else:
                message = f"`{text}` keeps the step's whole graph on the parameters' gradients, in a reference cycle"
                reason = "nothing after it in this iteration resets the gradients: the graph lives into the next forward"
                cost = Cost(
                    "every activation, until the gradients are reset",
                    "130 MiB instead of 32 MiB held for an 8-layer MLP; H200, torch 2.11",
                )
                yield Report(found.call, message, reason, cost, subject=subject, doubts=doubts)
        yield from told(facts.ask(cut_gradients), set())
