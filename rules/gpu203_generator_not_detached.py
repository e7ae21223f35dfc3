from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gpulint.rules._no_grad import no_grad
from gpulint.rules.detect.undetached import Undetached

from gpulint.answers import Considered
from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import Change, Cost, RelatedNode, Repair, Replace, Report, Rule, Wrap

if TYPE_CHECKING:
    from gpulint.rules.detect.unseen.returned_losses import ReturnedLoss

    from gpulint.analysis.file.asking import FileFacts

_COST = Cost(
    "a backward through all of the generator, for gradients that nothing uses",
    "3.37 instead of 2.70 ms, and 230 instead of 166 MiB where nothing else holds the graph, for 8-layer MLPs; H200, torch 2.11",
)


class GeneratorNotDetached(Rule):
    """
    ## What it does
    Finds discriminator steps whose loss goes back into the generator, where the generator's gradients are zeroed
    before its own optimizer steps.

    Confidence is low where a function gives the loss back and a caller goes backward through it: which optimizer steps
    which network only names say there.

    ## Why is this bad
    The backward runs through the whole generator for gradients that are thrown away. `fake.detach()` stops it there,
    which saves its time; the generator's activations have been saved by then. Only making the sample under `no_grad`
    saves the memory as well, and can be done where the generator's step makes a sample of its own.

    ## What it costs
    | discriminator step | peak | time |
    |---|---|---|
    | not detached | 230 MiB | 3.37 ms |
    | `fake = fake.detach()` | 166 MiB | 2.70 ms |
    | `fake` made under `no_grad` | 166 MiB | 2.68 ms |
    | not detached, `fake` lives on | 232 MiB | 3.32 ms |
    | `discriminator(fake.detach())`, `fake` lives on | 200 MiB | 2.82 ms |
    | made under `no_grad`, `fake` lives on | 168 MiB | 2.79 ms |

    (8-layer MLPs, batch 512 × 1,024; NVIDIA H200, torch 2.11)

    ## Example
    ```python
    import torch
    import torch.nn.functional as F

    def train(G: torch.nn.Module, D: torch.nn.Module, loader):
        opt_g = torch.optim.Adam(G.parameters())
        opt_d = torch.optim.Adam(D.parameters())
        for real in loader:
            fake = G(torch.randn(len(real), 64))
            loss_d = F.softplus(-D(real)).mean() + F.softplus(D(fake)).mean()
            opt_d.zero_grad()
            loss_d.backward()
            opt_d.step()

            loss_g = F.softplus(-D(G(torch.randn(len(real), 64)))).mean()
            opt_g.zero_grad()
            loss_g.backward()
            opt_g.step()
    ```

    ## Use instead
    ```python
    import torch
    import torch.nn.functional as F

    def train(G: torch.nn.Module, D: torch.nn.Module, loader):
        opt_g = torch.optim.Adam(G.parameters())
        opt_d = torch.optim.Adam(D.parameters())
        for real in loader:
            with torch.no_grad():
                fake = G(torch.randn(len(real), 64))
            loss_d = F.softplus(-D(real)).mean() + F.softplus(D(fake)).mean()
            opt_d.zero_grad()
            loss_d.backward()
            opt_d.step()

            loss_g = F.softplus(-D(G(torch.randn(len(real), 64)))).mean()
            opt_g.zero_grad()
            loss_g.backward()
            opt_g.step()
    ```

    ## Fix safety
    Where nothing else needs the generator's graph, making the sample under `with torch.no_grad():` is offered; else, and
    where the sample is made in the very call of the discriminator, `.detach()` on what that is given. Both leave the results
    as they are, because the gradients they avoid are zeroed before they are used: safe. Unsafe where code that is not seen
    gets what the discriminator gives, where the generator's gradients are read or clipped in between, and where the
    generator's class is not seen: it may give something that has no `detach()`. Nothing is offered where the same output
    of the discriminator serves another backward, as of the generator, or `autograd.grad`.
    """

    code = "GPU203"
    name = "generator-not-detached"
    severity = Severity.WARNING
    runtime_claim = Claim("forward")
    doubts = True
    triggers = (
        (b"backward", b"loss"),
        (b"parameters()", b"loss"),
        (b".step(", b"loss"),
        (b"zero_grad", b"loss"),
    )

    def considers(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Considered]:
        from gpulint.rules.detect.unseen.returned_losses import ReturnedLosses

        for one in facts.ask(ReturnedLosses).found:
            yield Considered(one.call, facts.source(one.given), one.answers)

    def check(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Report]:
        from gpulint.rules.detect.undetached import undetached
        from gpulint.rules.detect.unseen.returned_losses import ReturnedLosses

        for one in facts.ask(ReturnedLosses).found:
            if one.holds:
                yield _given_back(facts, one)
        for found in facts.ask(undetached):
            generator, what = found.generator.module.path, facts.source(found.argument)
            if found.wanted:
                advice = f"a `.detach()` would cut what else is made of the result: let it be made once more, of `{what}.detach()`"
            elif found.made is not None:
                advice = f"make it under `no_grad`: that saves the memory of `{generator}`'s activations and the time"
            elif found.nested:
                advice = f"`.detach()` saves the time, and the memory of `{generator}`'s activations during the rest of the step"
            else:
                advice = f"`.detach()` saves the time; not the memory, which another use of `{generator}`'s graph needs"
            yield Report(
                found.discriminator.call,
                f"`{what}` carries `{generator}`'s graph into a step of `{found.optimizer}`: its gradients are thrown away",
                f"`{generator}`'s gradients are zeroed before its optimizer steps; {advice}",
                _COST,
                repair=lambda found=found: _repair(facts, found),  # type: ignore[misc]
                subject=facts.source(found.argument, limit=200),
                related=(RelatedNode(f"this backward goes through `{generator}`", found.backward.call),),
            )


def _given_back(facts: FileFacts, one: ReturnedLoss) -> Report:
    generator = facts.called(one.maker)
    return Report(
        one.call,
        f"`{facts.source(one.given)}` carries `{generator}`'s graph into a loss that a discriminator's step goes back through",
        f"`{generator}`'s gradients are zeroed before its optimizer steps; make what is judged here under `no_grad`",
        _COST,
        unless_guarded=(one.function,),
        doubts=one.doubts,
        subject=facts.source(one.given, limit=200),
        related=(RelatedNode("it is made here", one.maker),),
    )


def _repair(facts: FileFacts, found: Undetached) -> Repair | None:
    from gpulint.fix.nodes import call_method, no_grad_with

    if found.wanted:
        return None

    spelled = no_grad(facts) if found.made is not None else None
    if found.made is None or spelled is None:
        change = Replace(found.argument.node, call_method(found.argument.node, "detach"))
        return Repair.unless(found.doubt, "detach what the discriminator is given", (change,))
    name, imports = spelled
    changes: tuple[Change, ...] = (Wrap((found.made.node,), no_grad_with(name)), *imports)
    return Repair.unless(found.doubt, f"make it under `{name}()`", changes)
