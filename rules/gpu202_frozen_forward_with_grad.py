from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gpulint.rules._no_grad import no_grad

from gpulint.answers import Answer, Considered, Verdict, doubts_of
from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import Cost, RelatedNode, Repair, Report, Rule, Wrap

if TYPE_CHECKING:
    from gpulint.rules.detect.unseen.loss_networks import LossNetwork
    from gpulint.rules.detect.unseen.side_networks import SideNetwork
    from gpulint.rules.detect.unseen.unstepped import Unstepped
    from gpulint.rules.detect.wasted import WastedForward

    from gpulint.analysis.code import ir
    from gpulint.analysis.file.asking import FileFacts


class FrozenForwardWithGrad(Rule):
    """
    ## What it does
    Finds networks that run with grad enabled inside a training step, although their result is only ever detached or
    read as a number, or although no optimizer trains them and nothing before them wants a gradient: teachers, target
    and reference networks, feature extractors.

    Three things leave a doubt: nothing reads the result, and the network may run for what it leaves elsewhere; the function
    does not call backward itself, so that a caller may have switched grad off; the result is used but no optimizer is seen to
    train the network, and another file's may.

    Confidence is high only where the network is seen to be large, or pictures go through it, and medium where how large
    it is cannot be seen: a step lets go of what it saves, and much of it is little beside the rest of the step.

    Nothing is said of a few linear layers whose widths are all in sight and small, and with low confidence where some are not:
    what one batch leaves in them is little. Of 8 findings like that, read in repositories that nobody had seen before, none
    was worth mending.

    Confidence is low as well where only a name, `reward_model`, `teacher`, says that the network is there to help, and
    what it is given is data: whoever made it may have frozen it.

    So are networks that a backward goes through to something else, and that nobody steps or freezes: an attacked classifier, of
    which only the patch is optimised, what a picture or a latent is fitted to, a judge between a generator and its loss. Their
    input wants a gradient, so that `no_grad` would be wrong: `net.requires_grad_(False)`, once and before the loop. Nothing is
    said where `torch.autograd.grad(loss, x)` or `backward(inputs=[x])` asks for that gradient alone. Confidence is low where it
    is not seen what makes the network, or who else has it.

    ## Why is this bad
    The forward saves every activation of the auxiliary network for a backward that never goes there, next to those of
    the network that is trained. `.detach()` on the result comes too late: until then the graph has been built.

    ## What it costs
    A teacher beside its student, 4-layer language models with AdamW: the step peaks at 3.63 GiB with grad and at 3.22
    GiB under `no_grad`, 11 % less; 8-layer MLPs: 162 MiB and 134 MiB. The steps took 26.7 and 26.3 ms, 1.78 ms and 1.66
    ms (NVIDIA H200, torch 2.11). A network whose parameters all have `requires_grad=False`, run on inputs without grad,
    builds no graph and is not reported.

    A network that a backward goes through to its input and that is not frozen gets gradients of all its weights, as large as the
    weights, in each step: with a patch optimised through 8 linear layers of width 1,024, 64.07 instead of 32.04 MiB stay
    allocated after a step, the step peaks at 106 instead of 58 MiB and takes 3.02 instead of 2.17 ms.

    ## Example
    ```python
    import torch
    import torch.nn.functional as F
    from torchvision.models import resnet50

    def distill(student: torch.nn.Module, loader, optimizer):
        teacher = resnet50(weights="DEFAULT").cuda()
        for inputs, _ in loader:
            outputs = student(inputs)
            targets = teacher(inputs).detach()
            loss = F.mse_loss(outputs, targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    ```

    ## Use instead
    ```python
    import torch
    import torch.nn.functional as F
    from torchvision.models import resnet50

    def distill(student: torch.nn.Module, loader, optimizer):
        teacher = resnet50(weights="DEFAULT").cuda()
        for inputs, _ in loader:
            outputs = student(inputs)
            with torch.no_grad():
                targets = teacher(inputs).detach()
            loss = F.mse_loss(outputs, targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    ```

    ## Fix safety
    Putting the statement under `with torch.no_grad():` changes no result, as nothing goes backward through it: safe.
    Offered where the statement runs no other network. Where backward does go through it, but nobody trains it: unsafe,
    as an optimizer in another file could. Nothing is offered where the network is to be frozen: another program may train it.
    """

    code = "GPU202"
    name = "frozen-forward-with-grad"
    severity = Severity.WARNING
    runtime_claim = Claim("forward", unvisited=True)
    doubts = True
    triggers = (
        (b"torch", b"lightning"),
        (
            b"detach",
            b"item()",
            b"argmax",
            b".data",
            b"float(",
            b"state_dict()",
            b".eval()",
            b"deepcopy",
            b"update(",
            b"save",
            b"show",
            b"log",
            b"torchvision",
            b"timm",
            b"requires_grad",
            b"optim",
        ),
        (b"backward", b"def forward", b"training_step", b"compute_loss"),
    )

    def considers(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Considered]:
        from gpulint.rules.detect.unseen.loss_networks import LossNetworks
        from gpulint.rules.detect.unseen.side_networks import SideNetworks
        from gpulint.rules.detect.unseen.unstepped import unstepped_networks

        for one in facts.ask(SideNetworks).found:
            yield Considered(one.call, one.path, one.answers)
        for other in facts.ask(LossNetworks).found:
            yield Considered(other.call, other.path, other.answers)
        for third in facts.ask(unstepped_networks):
            yield Considered(third.call, third.path, third.answers)

    def check(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Report]:
        from gpulint.rules.detect.wasted import wasted_forwards

        from gpulint.analysis.questions.grad.doubts import Doubts
        from gpulint.analysis.questions.grad.old_torch import predates_no_grad

        for wasted in facts.ask(wasted_forwards):
            doubts = facts.ask(Doubts)
            if doubts.stays_on_cpu(wasted.forward) or not doubts.names_gpu_for(wasted.forward):
                continue
            sizes = _sizes(facts, wasted)
            if any(answer.verdict is Verdict.REFUTED for answer in sizes):
                continue
            path = wasted.forward.module.path.removesuffix(".forward")
            where = "in a training step" if wasted.in_step else "beside the training steps"
            if wasted.untrained:
                message = f"`{path}` runs with grad enabled {where}, but no optimizer trains it"
                reason = (
                    "backward goes through it for gradients that nobody uses: what it is given has no graph"
                )
            else:
                message = f"`{path}` runs with grad enabled {where}, but no backward goes through this call"
                used = "is bound anew unread" if wasted.unread else "is only detached or read as a number"
                reason = f"the result of this call {used}: its activations are saved for nothing"
            yield Report(
                wasted.forward.call,
                message,
                reason,
                Cost(
                    "every activation of this forward, at the step's peak",
                    "3.63 instead of 3.22 GiB for a teacher as large as its student, 4-layer language models; H200, torch 2.11",
                ),
                repair=lambda wasted=wasted: _repair(facts, wasted),  # type: ignore[misc]
                unless_guarded=wasted.facts.only_called_elsewhere,
                doubts=(
                    *_doubts(wasted),
                    *doubts_of(wasted.handed),
                    *doubts_of(facts.ask(predates_no_grad)),
                    *doubts_of(sizes),
                ),
                subject=path,
                # A backward does go through a network that nobody trains: what is wasted are its gradients.
                claim=Claim("forward") if wasted.untrained else None,
            )

        mentioned: set[ir.Function] = {wasted.facts.function for wasted in facts.ask(wasted_forwards)}
        from gpulint.rules.detect.unseen.loss_networks import LossNetworks
        from gpulint.rules.detect.unseen.side_networks import SideNetworks
        from gpulint.rules.detect.unseen.unstepped import unstepped_networks

        for other in facts.ask(LossNetworks).found:
            if other.holds and other.function not in mentioned:
                yield _in_loss(facts, other)
        for one in facts.ask(SideNetworks).found:
            if one.holds and one.function not in mentioned:
                mentioned.add(one.function)
                yield _beside(one)
        for third in facts.ask(unstepped_networks):
            if third.holds and third.function not in mentioned:
                yield _unstepped(third)


def _doubts(wasted: WastedForward) -> Iterator[str]:
    if not wasted.facts.has_backward:
        yield "no backward is seen here: a caller may have switched grad off"
    if wasted.untrained:
        yield "an optimizer that is not seen may train it"
    if wasted.unread:
        yield "nothing reads its result: it may run for what it leaves elsewhere"


def _sizes(facts: FileFacts, wasted: WastedForward) -> tuple[Answer, ...]:
    from gpulint.analysis.questions.size.forwards import ForwardSizes

    forward = wasted.forward
    return tuple(
        facts.ask(ForwardSizes).of_step(
            forward.function, forward.call, forward.module.path, forward.module.network
        )
    )


def _beside(one: SideNetwork) -> Report:
    return Report(
        one.call,
        f"`{one.path}` runs with grad enabled in a training step, beside the network that is trained",
        "what it is given is data: its activations are saved for gradients that nobody is seen to use",
        Cost(
            "every activation of this forward, at the step's peak",
            "3.63 instead of 3.22 GiB for a teacher as large as its student, 4-layer language models; H200, torch 2.11",
        ),
        unless_guarded=(one.function,),
        doubts=one.doubts,
        subject=one.path,
        claim=Claim("forward"),
    )


def _unstepped(one: Unstepped) -> Report:
    return Report(
        one.call,
        f"backward goes through `{one.path}` to {one.wanted}, and makes gradients of all its weights, which nobody steps",
        f"each step computes them, and `.grad` holds them as long as nobody clears it: `{one.path}.requires_grad_(False)`, once "
        "and before the loop, spares both, unless an optimizer was meant to have it",
        Cost(
            "gradients of all the weights, as large as the weights, held for the whole run, and computed in each step",
            "64 instead of 32 MiB after a step through 8 linear layers of width 1,024; H200, torch 2.11",
        ),
        unless_guarded=(one.function,),
        doubts=doubts_of(one.answers),
        subject=one.path,
    )


def _in_loss(facts: FileFacts, one: LossNetwork) -> Report:
    made = facts.called(one.maker)
    return Report(
        one.call,
        f"`{made}` of a loss is never frozen: what is compared with gets a graph as well",
        "each backward gives its weights gradients that nobody is seen to use: `requires_grad_(False)` where it is made spares both",
        Cost(
            "every activation of this forward, at the step's peak",
            "3.63 instead of 3.22 GiB for a teacher as large as its student, 4-layer language models; H200, torch 2.11",
        ),
        unless_guarded=(one.function,),
        doubts=one.doubts,
        related=(RelatedNode("it is made here", one.maker),),
        subject=one.path,
        claim=Claim("forward"),
    )


def _repair(facts: FileFacts, wasted: WastedForward) -> Repair | None:
    from gpulint.analysis.questions.grad.guarding import Guarding
    from gpulint.fix.nodes import no_grad_with

    doubt = facts.ask(Guarding).doubt(wasted.facts.function, wasted.forward.stmt)
    spelled = no_grad(facts)
    if not wasted.alone or doubt is None or spelled is None:
        return None
    name, imports = spelled
    change = Wrap((wasted.forward.stmt.node,), no_grad_with(name))
    why = "an optimizer in another file may train it" if wasted.untrained else doubt
    if not why and wasted.facts.differentiated:
        why = "gradients are taken here by other means than a backward in sight"
    return Repair.unless(why, f"run it under `{name}()`", (change, *imports))
