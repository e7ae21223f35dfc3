from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gpulint.rules.detect.copies.snapshots import Snapshot

from gpulint.analysis.code import ir
from gpulint.answers import doubts_of
from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import Cost, Repair, Replace, Report, Rule

if TYPE_CHECKING:
    from gpulint.analysis.file.asking import FileFacts
    from gpulint.answers import Considered


class SnapshotOnDevice(Rule):
    """
    ## What it does
    Finds copies of a model's weights that are kept on the GPU: `copy.deepcopy(model.state_dict())`, or a dict of
    clones. Copies whose entries the program reads one by one, as averages of weights do, are not reported. It also
    says where `best = model.state_dict()` is taken for a copy: that dict shows the weights of every later moment, so handing it out
    as the best, or loading it into the same model again, is of no use.

    With a doubt it tells of copies of networks that are not seen to be large, of copies that live for one step, of those that are made when the training is over, of whole
    networks copied where they are, of copies that nobody runs, saves or puts back, as an average of the weights that is only kept up to date, and of lists or dicts of `state_dict()` that are kept as the best: they are the live weights.

    ## Why is this bad
    The copy lies idle on the GPU until it is loaded again, if ever. On the CPU it costs nothing there. An alias costs
    nothing either, but loading it loads the weights that the model has anyway.

    ## What it costs
    One model: 173 MiB for a 4-layer language model of 173 MiB, as a dict of clones 177 MiB, and 0 B on the CPU; and one
    more, 522 against 175 MiB at the peak, while a better copy takes the place of the last. The copy to the CPU takes
    71.7 ms, that on the GPU 1.32 ms (NVIDIA H200, torch 2.11).

    ## Example
    ```python
    import copy

    import torch
    from torch import nn

    model = nn.Linear(8192, 8192).cuda()


    def fit(epochs, train, score):
        best_score, best = 0.0, None
        for epoch in range(epochs):
            train(model)
            if score(model) > best_score:
                best = copy.deepcopy(model.state_dict())
        model.load_state_dict(best)
    ```

    ## Use instead
    ```python
    import copy

    import torch
    from torch import nn

    model = nn.Linear(8192, 8192).cuda()


    def fit(epochs, train, score):
        best_score, best = 0.0, None
        for epoch in range(epochs):
            train(model)
            if score(model) > best_score:
                best = {key: value.detach().cpu().clone() for key, value in model.state_dict().items()}
        model.load_state_dict(best)
    ```

    ## Fix safety
    Safe where the copy is only loaded, saved or compared with None. Unsafe otherwise: its tensors are on the CPU then.
    Nothing is offered for a list of copies one of which is read entry by entry.
    For an alias always unsafe, as the program will load other weights than before: those of the best moment.
    """

    code = "GPU404"
    name = "snapshot-on-device"
    severity = Severity.WARNING
    runtime_claim = Claim("growth", device_only=True)
    triggers = ((b"state_dict()", b"deepcopy"), (b"deepcopy", b"clone()", b"load_state_dict"))
    doubts = True

    def considers(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Considered]:
        from gpulint.rules.detect.copies.idle_copies import idle_copies
        from gpulint.rules.detect.copies.live_states import live_states
        from gpulint.rules.detect.lifetimes.network_copies import network_copies
        from gpulint.rules.detect.lifetimes.suspicion import considered

        yield from considered((*facts.ask(network_copies), *facts.ask(idle_copies), *facts.ask(live_states)))

    def check(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Report]:
        from gpulint.rules.detect.copies.idle_copies import idle_copies
        from gpulint.rules.detect.copies.live_states import live_states
        from gpulint.rules.detect.copies.snapshots import snapshots
        from gpulint.rules.detect.lifetimes.network_copies import network_copies
        from gpulint.rules.detect.lifetimes.suspicion import told

        rows: set[int] = set()
        for snapshot in facts.ask(snapshots) if facts.on_gpu else ():
            rows |= {snapshot.stmt.row, snapshot.copy.row}
            yield _alias(facts, snapshot) if snapshot.what == "alias" else _copy(facts, snapshot)
        idle = facts.ask(idle_copies) if facts.on_gpu else ()
        yield from told((*facts.ask(network_copies), *idle, *facts.ask(live_states)), rows)


def _copy(facts: FileFacts, snapshot: Snapshot) -> Report:
    return Report(
        snapshot.copy,
        f"`{snapshot.holder}` keeps a copy of the weights of `{facts.source(snapshot.source)}` on the GPU",
        "all of them stay, whichever is needed: the others can wait on the CPU"
        if snapshot.computed
        else "nothing computes with the copy; on the CPU it waits as well",
        Cost("one model on the GPU", "173 MiB for a 4-layer language model; H200, torch 2.11"),
        None if snapshot.certain else Severity.INFO,
        repair=lambda: _repair(facts, snapshot),
        doubts=_doubts(facts, snapshot),
        subject=snapshot.holder,
    )


def _doubts(facts: FileFacts, snapshot: Snapshot) -> tuple[str, ...]:
    from gpulint.analysis.questions.outlives.one_step import lives_one_step, made_at_the_end
    from gpulint.analysis.questions.size.states import copy_doubts

    if snapshot.many:
        return ()
    func = snapshot.source.func
    owner = func.base.path if isinstance(func, ir.Attr) else None
    found = [*doubts_of(copy_doubts(facts.ask, snapshot.function, owner or ""))]
    if snapshot.unplaced:
        found.append("the constructor is given the network, and whether it is on a GPU by then is not shown")
    if lives_one_step(snapshot.function, snapshot.stmt, snapshot.holder):
        found.append("it lives for one step, and is needed at once")
    elif made_at_the_end(snapshot.function, snapshot.stmt):
        found.append("no step runs while it is there")
    return tuple(found)


def _alias(facts: FileFacts, snapshot: Snapshot) -> Report:
    return Report(
        snapshot.copy,
        f"`{snapshot.holder}` is no copy: it changes with every step of training, so loading it changes nothing",
        "`state_dict()` gives the tensors of the model themselves",
        "no memory, but the weights that were meant to be kept",
        Severity.INFO,
        repair=lambda: _repair(facts, snapshot),
        subject=snapshot.holder,
        claim=Claim("alias", device_only=True),
    )


def _repair(facts: FileFacts, snapshot: Snapshot) -> Repair | None:
    from gpulint.fix.nodes import expression, method_chain

    if snapshot.computed:
        return None  # beside weights on the GPU a copy on the CPU raises
    why_unsafe = ""
    if snapshot.what == "alias":
        why_unsafe = "other weights are loaded than before: those of the moment of the copy"
    elif not snapshot.restored_only:
        why_unsafe = "what else reads the copy gets its tensors on the CPU"
    if snapshot.cloned is not None:
        on_cpu = Replace(snapshot.cloned.node, method_chain(snapshot.cloned.node, ("cpu",)))
        return Repair.unless(why_unsafe, "keep the copy on the CPU: `.cpu()`", (on_cpu,))
    source = facts.source(snapshot.source, 200)
    new = expression(f"{{key: value.detach().cpu().clone() for key, value in {source}.items()}}")
    return Repair.unless(why_unsafe, "keep a copy on the CPU", (Replace(snapshot.copy.node, new),))
