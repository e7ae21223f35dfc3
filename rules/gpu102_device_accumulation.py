from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gpulint.analysis.code import ir
from gpulint.analysis.questions.outlives.collecting import only_takes_in
from gpulint.analysis.torch.roles import SCORES
from gpulint.analysis.values.values import DENSE, LARGE, MAYBE, SCALAR, VIEW
from gpulint.answers import (
    Answer,
    Considered,
    Question,
    Verdict,
    as_far,
    confidence_of,
    doubts_of,
    left_open,
    proven,
    refuted,
    until_refuted,
)
from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import Cost, Repair, Replace, Report, Rule

if TYPE_CHECKING:
    from gpulint.rules.detect.unseen.gathered import Gathering

    from gpulint.analysis.file.asking import FileFacts
    from gpulint.analysis.file.facts import Hold


class DeviceAccumulation(Rule):
    """
    ## What it does
    Finds model outputs without a graph that pile up in a container, batch after batch, while they stay on the device.
    The uses of the container are followed, into callers and other files too: it is reported where it ends on the host,
    or where nothing in the project uses what a function returns, and not where it is computed with on the device. Slices
    of one tensor that may be there as a whole are no batches.

    Told in doubt: a container of what a call out of sight gives, which is joined, or looked at item by item, when the
    loop is over, in this function, in a helper or in another method. Who writes `torch.cat(outputs).cpu()` has had
    tensors on the device, all of them at once; how large they are, how many rounds there are and whether the joined
    tensor is needed on the device may be left open. So is how much each round adds, unless it is known to be scores over a
    vocabulary or over every pixel: features and scores of a few classes rarely come to much.
    With a doubt it also tells of lists that are extended with a batch's tensor, one view for each sample, of detached
    tensors handed to a replay memory as priorities, and of pictures that are read from files and moved to the GPU all of them,
    though a loop looks at them one by one.

    ## Why is this bad
    Under `no_grad` an output has no graph, but it is as large as the batch's logits or features, and a list of all of
    them grows with the data set until the GPU is full, usually at the end of the first validation. A slice of an
    output is no better: a view keeps the whole tensor it was taken from.

    ## What it costs
    The output's own bytes, each batch: 500 MiB a step for the logits of a language model with a vocabulary of 32,000
    (batch 16 × 256), 2.00 MiB for the features of an 8-layer MLP (512 × 1,024), and 0 B where they go to the host. A
    kept view of one row, `out[0]`, costs what the whole output costs, 500 MiB and 2.00 MiB; a `clone()` of that row of
    logits 31.25 MiB (NVIDIA H200, torch 2.11).

    ## Example
    ```python
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained("gpt2").cuda().eval()


    @torch.no_grad()
    def predict(loader):
        outputs = []
        for tokens in loader:
            outputs.append(model(tokens.cuda()).logits)
        return torch.cat(outputs)
    ```

    ## Use instead
    ```python
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained("gpt2").cuda().eval()


    @torch.no_grad()
    def predict(loader):
        outputs = []
        for tokens in loader:
            outputs.append(model(tokens.cuda()).logits.cpu())
        return torch.cat(outputs)
    ```

    ## Fix safety
    The fix inserts `.cpu()`. It is unsafe: what is made from the container afterwards is on the CPU too. Nothing is offered
    where that may be needed on the device, or where nothing shows that tensors are kept.
    """

    code = "GPU102"
    name = "device-accumulation"
    severity = Severity.WARNING
    runtime_claim = Claim("drift")
    doubts = True
    triggers = (
        (b"torch", b"lightning"),
        (
            b"no_grad",
            b"inference_mode",
            b"detach",
            b"set_grad_enabled",
            b"_step(",
            b"numpy()",
            b".extend(",
            b".data",
            b"Image.open",
            b"imread",
            b"read_image",
        ),
        (b"append", b"extend", b"insert", b"+=", b"] =", b"cat(", b"stack(", b"_priorit"),
        (b"for ", b"while ", b"self."),
        (b"cuda", b".to(", b"device", b"gpu", b"lightning", b"accelerat"),
    )

    def considers(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Considered]:
        from gpulint.rules.detect.lifetimes.batch_views import extended_lists
        from gpulint.rules.detect.lifetimes.early_moves import early_moves
        from gpulint.rules.detect.lifetimes.memories import kept_priorities
        from gpulint.rules.detect.lifetimes.suspicion import considered
        from gpulint.rules.detect.unseen.gathered import Gathered

        for hold in facts.holds():
            if hold.place.container:
                yield Considered(hold.at, hold.place.holder, tuple(as_far(_answers(facts, hold))))
        for one in facts.ask(Gathered).found:
            yield Considered(one.at, one.holder, one.answers)
        yield from considered(
            (*facts.ask(extended_lists), *facts.ask(kept_priorities), *facts.ask(early_moves))
        )

    def check(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Report]:
        from gpulint.rules.detect.lifetimes.batch_views import extended_lists
        from gpulint.rules.detect.lifetimes.early_moves import early_moves
        from gpulint.rules.detect.lifetimes.memories import kept_priorities
        from gpulint.rules.detect.lifetimes.suspicion import told
        from gpulint.rules.detect.unseen.gathered import Gathered

        rows: set[int] = set()
        spoken: set[ir.Function] = set()
        none: set[tuple[ir.Function, str]] = set()
        for hold in facts.holds():
            answers = until_refuted(_answers(facts, hold)) if hold.place.container else ()
            if answers and confidence_of(answers) is not None:
                spoken.add(hold.function)
                rows.add(hold.at.row)
                yield _report(facts, hold, doubts_of(answers))
            elif _is_none(hold, answers):
                none.add((hold.function, hold.place.holder))
        ones = [one for one in facts.ask(Gathered).found if one.holds and (facts.on_gpu or one.to_host)]
        for one in sorted(
            ones, key=lambda one: len(one.doubts)
        ):  # one report a function: of what is least in doubt
            if one.function not in spoken and (one.function, one.holder) not in none:
                spoken.add(one.function)
                rows.add(one.at.row)
                yield _gathered(facts, one)
        yield from told(
            (*facts.ask(extended_lists), *facts.ask(kept_priorities), *facts.ask(early_moves)), rows
        )


def _is_none(hold: Hold, answers: tuple[Answer, ...]) -> bool:
    """Whether it is known of a container of device tensors that it is no pile, and not only unknown that it is one."""
    if hold.graph.state != "device":
        return hold.graph.consumed
    pile = hold.place.pile
    if pile is not None and (
        pile.host or pile.small or pile.few or pile.parts or pile.elsewhere or pile.on_device
    ):
        return True
    refuted_by = {answer.question for answer in answers if answer.verdict is Verdict.REFUTED}
    if hold.value.has(DENSE) and hold.rounds.birth_loop is not None:
        refuted_by.discard(Question.OUTLIVES)  # the pieces of one document may be many, and each is large
    return bool(
        refuted_by & {Question.OUTLIVES, Question.DEVICE, Question.MEANT, Question.BACKWARD, Question.SIZE}
    )


def _answers(facts: FileFacts, hold: Hold) -> Iterator[Answer]:
    """On what the claim stands that a container piles up large tensors on the device, the cheap questions first."""
    holder = f"`{hold.place.holder}`"
    if hold.graph.state != "device":
        yield refuted(Question.GRAPH, "what is held has a graph, or is not shown to be a tensor")
        return
    yield from _against_size(hold)
    yield from _against_piling(hold)
    yield from _against_rounds(hold)
    if not facts.on_gpu:
        yield refuted(Question.DEVICE, "the file names the CPU as its device, and no GPU")
    elif any(full.partition(".")[0] == "torch_xla" for full in facts.imports.values()):
        yield refuted(
            Question.DEVICE, "XLA computes nothing before it is asked: a copy would wait for each batch"
        )
    if _is_moved_on_request(hold):
        yield refuted(Question.MEANT, "it is moved to a device that the caller chooses for that")
    if not hold.value.has(DENSE):
        yield from _may_be_little(facts, hold)
    yield proven(
        Question.OUTLIVES,
        f"{holder} keeps one for each round, until all are moved at once or nobody reads them",
    )


def _may_be_little(facts: FileFacts, hold: Hold) -> Iterator[Answer]:
    if named := _scores_beside(facts, hold):
        yield left_open(Question.SIZE, f"`{named}` may be no more than a row of scores for each sample")
        yield left_open(Question.REPEATS, "how many samples there are, the code does not say")
    else:
        yield left_open(
            Question.SIZE, "how much each round adds, and how many there are, the code does not say"
        )


def _scores_beside(facts: FileFacts, hold: Hold) -> str:
    """The same of all that the container takes: one of two branches may leave out the softmax."""
    beside = (
        one
        for one in facts.holds()
        if one.function is hold.function and one.place.holder == hold.place.holder
    )
    return _scores(hold) or next(filter(None, map(_scores, beside)), "")


def _scores(hold: Hold) -> str:
    """What is held, where it is called as scores of a few classes are; empty where it is called otherwise."""
    for leaf in hold.leaves:
        for part in ir.walk(leaf):
            name = part.attr if isinstance(part, ir.Attr) else part.id if isinstance(part, ir.Name) else ""
            if SCORES.search(name):
                return name
    return ""


def _against_size(hold: Hold) -> Iterator[Answer]:
    if hold.value.has(SCALAR) or not (hold.value.has(LARGE) or only_takes_in(hold)):
        yield refuted(Question.SIZE, "a number, or nothing that is shown to be large")
    if hold.value.has(MAYBE):
        yield refuted(Question.TENSOR, "not all that it may be is such a tensor")


def _against_piling(hold: Hold) -> Iterator[Answer]:
    if hold.rounds.bounded:
        yield refuted(Question.OUTLIVES, f"`{hold.place.holder}` is emptied, overwritten or bounded")
    if hold.graph.consumed:
        yield refuted(Question.BACKWARD, f"a later backward goes through `{hold.place.holder}`")
    waits = hold.place.pile is not None and (hold.place.pile.idle or hold.place.unread)
    if not waits and not only_takes_in(hold):
        yield refuted(Question.READS, "it is computed with on the device, or what becomes of it is not shown")
    if hold.function.name == "forward" or hold.graph.fed_back:
        yield refuted(Question.OUTLIVES, "it is a part of a forward, or goes into the next one")


def _against_rounds(hold: Hold) -> Iterator[Answer]:
    if not hold.rounds.loops:
        gathers = hold.place.gathers and hold.place.pile is not None and hold.place.pile.to_host
        if hold.place.holder_kind != "attribute" or not (hold.rounds.per_step or gathers):
            yield refuted(
                Question.REPEATS, "no loop runs it, and nothing shows that it is called for each batch"
            )
        return
    if hold.rounds.birth_loop is not None and (
        hold.rounds.birth_loop.over_data or hold.rounds.birth_loop.over_items
    ):
        yield refuted(Question.OUTLIVES, f"`{hold.place.holder}` is made anew for each batch")
    if only_takes_in(hold):
        return  # however many rounds there are: whatever it keeps is kept for nobody
    to_host = hold.place.pile is not None and hold.place.pile.to_host
    views = hold.rounds.fresh_view and to_host and any(loop.counts for loop in hold.rounds.loops)
    if not hold.rounds.made_in_loop:
        yield refuted(Question.REPEATS, "no network runs in the loop that fills it")
    elif not (hold.rounds.over_batches or views or (hold.rounds.over_items and to_host)):
        yield refuted(Question.REPEATS, "the loop is not shown to run through batches")


def _is_moved_on_request(hold: Hold) -> bool:
    """Whether the function moves what it collects to a device that its caller chooses for that: `out.to(output_device)`."""
    given = {param.name for param in hold.function.params}
    chosen = {
        arg.path
        for _, call in ir.calls(hold.function.body)
        if call.method == "to"
        for arg in (*call.args, *(value for name, value in call.keywords if name == "device"))
        if arg.path in given and arg.path not in ("device", "dtype", "self")
    }
    names = {leaf.path for leaf in hold.leaves}
    for statement in ir.statements(hold.function.body):
        value = statement.value if isinstance(statement, ir.Assign) else None
        moves = [value] if value is not None and {t.path for t in statement.targets} & names else []  # type: ignore[attr-defined]
        for expr in (*moves, *(hold.leaves if statement is hold.stmt else ())):
            for part in ir.walk(expr):
                if (
                    isinstance(part, ir.Call)
                    and part.method == "to"
                    and {a.path for a in part.args} & chosen - {None}
                ):
                    return True
    return False


def _report(facts: FileFacts, hold: Hold, doubts: tuple[str, ...]) -> Report:
    what = facts.source(hold.leaves[0]) if hold.leaves else "an output"
    reason = "no graph, but the tensors stay on the device until the container goes"
    if _is_slice(hold):
        reason = "an indexed tensor is a view: it keeps the whole tensor it was taken from on the device"
    message = f"`{hold.place.holder}` collects `{what}` of every batch on the device"
    if only_takes_in(hold):
        message = f"`{hold.place.holder}` keeps `{what}` of every round on the device, and nobody reads it"
    return Report(
        hold.at,
        message,
        reason,
        Cost(
            "the bytes of the whole output, for each batch",
            "500 MiB a step for a language model's logits; H200, torch 2.11",
        ),
        repair=lambda: _repair(hold),
        doubts=doubts,
        subject=hold.place.holder,
    )


def _gathered(facts: FileFacts, one: Gathering) -> Report:
    return Report(
        one.at,
        f"`{one.holder}` collects `{facts.source(one.leaf)}` of every round on the device",
        "the tensors stay on the device until all of them are made one, which takes as much again",
        Cost(
            "the bytes of the whole output, for each round",
            "500 MiB a step for a language model's logits; H200, torch 2.11",
        ),
        repair=lambda: _moved(one),
        doubts=one.doubts,
        subject=one.holder,
    )


def _moved(one: Gathering) -> Repair | None:
    from gpulint.fix.nodes import method_chain

    if not one.to_host or not one.is_made_here:
        return None  # what it is made into may be needed on the device, or it is no tensor
    change = Replace(one.leaf.node, method_chain(one.leaf.node, ("cpu",)))
    why = f"what reads `{one.holder}` finds tensors on the CPU"
    return Repair("unsafe", "keep the copy on the host: `.cpu()`", (change,), why)


def _is_slice(hold: Hold) -> bool:
    """`out[:, 0]`; an item of a tuple, `out[0]`, would be no view."""
    leaf = hold.leaves[0] if hold.leaves else None
    return isinstance(leaf, ir.Sub) and hold.value.has(VIEW) and isinstance(leaf.index, (ir.Seq, ir.Slice))


def _repair(hold: Hold) -> Repair | None:
    from gpulint.fix.nodes import method_chain

    if not hold.leaves or hold.place.how == "cat":
        return None  # `x = torch.cat([x, y])`: what x starts from would have to move as well
    if only_takes_in(hold) and not hold.place.unread:
        return None  # what nobody reads is better left out than copied
    changes = tuple(Replace(leaf.node, method_chain(leaf.node, ("cpu",))) for leaf in hold.leaves)
    why = f"what reads `{hold.place.holder}` finds tensors on the CPU"
    return Repair("unsafe", "keep the copy on the host: `.cpu()`", changes, why)
