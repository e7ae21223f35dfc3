from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gpulint.rules.detect.checkpoints import Load

from gpulint.answers import doubts_of
from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import Cost, Repair, Replace, Report, Rule

if TYPE_CHECKING:
    from gpulint.analysis.file.asking import FileFacts
    from gpulint.answers import Considered


class CheckpointOnDevice(Rule):
    """
    ## What it does
    Finds `torch.load` of a training checkpoint without `map_location`, or with a CUDA device as such, in a program that
    uses CUDA. Only loads that end in `load_state_dict` are reported, and only where the program shows that the model goes
    to a GPU and that the file is a checkpoint of a training: one entry of it is taken, or the same file saves such states.
    With `map_location=device`, where the device is the GPU if there is one, a name must hold the checkpoint while the
    program trains or infers in a loop. With a CUDA device as such that will do as well, or a training's own checkpoint: an
    optimizer is restored too, or the same file saves such states.

    Without a doubt it tells of a checkpoint that is held while steps run and has an optimizer's state in it, or the weights of a
    large network, and of one that every rank brings back to the same GPU. Most others are small, or are let go of before
    training begins: of 110 findings of this rule, read in repositories that nobody had seen before, 20 were worth mending.

    With a doubt it also tells of a place that is None wherever there is CUDA, of loads in every process of several, of best
    weights loaded behind a training, of an optimizer restored together with the weights, of weights that a name keeps while
    steps run, of lists of checkpoints, of checkpoints that are an attribute of an object, and of helpers that hand out what they load.

    ## Why is this bad
    Without `map_location` every tensor of the checkpoint comes back on the GPU it was saved from, beside the model and
    the optimizer that it is about to be copied into. With several processes all of them load onto the same GPU.

    ## What it costs
    Resuming a 4-layer language model with AdamW: peak 1.02 GiB, 870 MiB with `map_location="cpu"`; from weights alone
    348 MiB and 174 MiB. Loading takes a little longer then, 287 instead of 249 ms (NVIDIA H200, torch 2.11). As long as
    a name holds the checkpoint, the memory stays taken; where none does, the finding is only an info.

    ## Example
    ```python
    import torch
    from torch import nn

    model = nn.Linear(8192, 8192).cuda()
    optimizer = torch.optim.Adam(model.parameters())

    checkpoint = torch.load("last.pt")
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn

    model = nn.Linear(8192, 8192).cuda()
    optimizer = torch.optim.Adam(model.parameters())

    checkpoint = torch.load("last.pt", map_location="cpu")
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    ```

    ## Fix safety
    Safe where all that is loaded goes into `load_state_dict`, which copies to the device of the model, or is a number.
    Unsafe otherwise: what reads a tensor of the checkpoint gets it on the CPU; and where a class of the program has a
    `load_state_dict` of its own, which may keep what it is given. Of an `if` whose other branch loads the
    same file to the CPU, that branch remains.
    """

    code = "GPU403"
    name = "checkpoint-on-device"
    severity = Severity.WARNING
    runtime_claim = Claim("growth", device_only=True)
    triggers = ((b"torch",), (b"load(",), (b"cuda", b"device", b"rank", b"State", b"checkpoint", b"ckpt"))
    doubts = True

    def considers(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Considered]:
        from gpulint.rules.detect.lifetimes.kept_loads import kept_loads
        from gpulint.rules.detect.lifetimes.suspicion import considered
        from gpulint.rules.detect.lifetimes.unmapped_loads import unmapped_loads

        yield from considered((*facts.ask(unmapped_loads), *facts.ask(kept_loads)))

    def check(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Report]:
        from gpulint.rules.detect.checkpoints import loads
        from gpulint.rules.detect.lifetimes.kept_loads import kept_loads
        from gpulint.rules.detect.lifetimes.suspicion import told
        from gpulint.rules.detect.lifetimes.unmapped_loads import unmapped_loads

        rows: set[int] = set()
        for load in facts.ask(loads):
            rows |= {load.call.row, load.stmt.row}
            if not _is_nothing(facts, load):
                yield _report(facts, load)
        if facts.on_gpu:
            yield from told((*facts.ask(kept_loads), *facts.ask(unmapped_loads)), rows)


def _report(facts: FileFacts, load: Load) -> Report:
    where = "the GPU it was saved from" if load.location is None else f"`{facts.source(load.location)}`"
    return Report(
        load.call,
        f"`{facts.source(load.call).replace('( ', '(')}` puts the whole checkpoint on {where} before any of it is copied",
        "`load_state_dict` copies from the CPU just as well, one tensor at a time",
        Cost(
            "the whole checkpoint on the device, beside the model it goes into",
            '870 MiB allocated while loading, 348 MiB with `map_location="cpu"`, for a 4-layer language model; H200, torch 2.11',
        ),
        None if load.held else Severity.INFO,
        lambda: _repair(facts, load),
        doubts=_doubts(facts, load),
        subject=facts.called(load.call),
    )


def _is_nothing(facts: FileFacts, load: Load) -> bool:
    """Whether a few weights pass through the GPU on their way into their network, and nothing else is seen to."""
    from gpulint.analysis.questions.size.states import are_small

    if load.stays or load.by_every_rank or load.brings_optimizer:
        return False
    return are_small(facts.ask, load.function, load.owners)


def _doubts(facts: FileFacts, load: Load) -> tuple[str, ...]:
    """Where nothing of a checkpoint stays, it only matters if it is large beside what the training takes later; where it
    stays, if it is large at all: with an optimizer's state it is three times its network."""
    from gpulint.rules.detect.checkpoints import saves_optimizers

    from gpulint.analysis.code.loaded import is_of_others
    from gpulint.analysis.questions.size.states import checkpoint_doubts, ranks_doubts

    if load.location is None and not load.brings_optimizer and is_of_others(load.call.args[0]):
        return ("by its name others have trained it, and where they saved it from is not shown",)
    if load.by_every_rank:
        return doubts_of(tuple(ranks_doubts(facts.ask, load.function, load.owners)))
    if not load.stays:
        return (
            "no step is seen to run before it is let go of",
            "how large it is, the code does not say",
        )
    with_optimizer = load.brings_optimizer or (load.formatted and facts.ask(saves_optimizers))
    size = checkpoint_doubts(facts.ask, load.function, load.owners, with_optimizer, load.brings_optimizer)
    return doubts_of(tuple(size))


def _repair(facts: FileFacts, load: Load) -> Repair | None:
    from gpulint.rules.detect.checkpoints import restores_its_own_way

    from gpulint.analysis.questions.grad.old_torch import predates_no_grad
    from gpulint.fix.nodes import with_argument

    if facts.ask(predates_no_grad):
        return None  # a torch of that age takes no text for a place
    why_unsafe = ""
    if not load.plain_uses:
        why_unsafe = "what else is read of the checkpoint is on the CPU then"
    elif facts.ask(restores_its_own_way):
        why_unsafe = "a `load_state_dict` of the program's own may keep the tensors where they were loaded"
    branch = load.host_branch
    if branch is not None and branch.is_idle:
        changes = (Replace(branch.whole.node, branch.stmt.line),)
        return Repair.unless(why_unsafe, "load it to the CPU in any case", changes)
    new = with_argument(load.call.node, "map_location", facts.quoted("cpu"), position=1)
    changes = (Replace(load.call.node, new),)
    return Repair.unless(why_unsafe, f"load it to the CPU: `map_location={facts.quoted('cpu')}`", changes)
