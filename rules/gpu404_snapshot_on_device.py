from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from gpulint.rules._held.mended import by_methods

from gpulint.analysis.asked import Asked
from gpulint.analysis.evaluate.consumers import Use
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.queries.copies import Copy, Fate, changed_between, copies, fate
from gpulint.analysis.queries.loads import weights_matter
from gpulint.analysis.queries.networks.behind import source_of
from gpulint.analysis.queries.networks.placed import placed
from gpulint.analysis.queries.outcome import place_in
from gpulint.analysis.queries.reached import PYTHONS_OWN, reached
from gpulint.analysis.syntax.flow import Flow
from gpulint.analysis.syntax.nodes import LOOPS, called_on, key_of
from gpulint.answers import Answer, Question, Verdict, left_open, minor, proven, refuted, until_refuted
from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import Claimed, Cost, Repair, Replace, Report, Rule

_LEAVES = (ast.Break, ast.Return, ast.Raise)


class SnapshotOnDevice(Rule):
    """
    ## What it does
    Finds copies of a model's weights that are kept on the GPU: `copy.deepcopy(model.state_dict())`, or a dict or list of
    clones, of the state dict or of the parameters, which are put back at once or by `copy_` one by one. Copies whose entries the program computes
    with, as averages of weights do, are not reported, but for a list that gets one more in each round. It also says where `best = model.state_dict()`, or a list of them, is taken for a copy and put back into
    the same model, or saved after the loop that trains on: that dict shows the weights of every later moment, so what is loaded or
    saved are the last ones. So it does of `best = model` where a figure is better, of which use is made after the loop. This is an error: the program computes something else than it says.

    With a doubt it tells of copies of networks that are not seen to be large, of copies that live for one step, of those that
    are made when the training is over, of copies that are handed to whoever calls, and of whole networks that are copied where they are and only
    saved, loaded, or kept up to date as an average. Where the code names no device but moves the network to one, it is a note.

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
    runtime_claim = Claim("growth", device_only=True)
    triggers = (
        (b"state_dict()", b"deepcopy", b"parameters"),
        (b"deepcopy", b"clone()", b"load_state_dict", b"save(", b".step("),
    )
    doubts = True

    def claims(self, asked: Asked, options: Mapping[str, Any]) -> Iterator[Claimed]:
        for copy in _last_of_each(copies(asked.evaluator, asked.file)):
            what = fate(asked.evaluator, copy)
            told_of, report_of = (_of_alias, _alias) if copy.what == "alias" else (_of_copy, _copy)
            answers, report = until_refuted(told_of(asked, copy, what)), partial(report_of, asked, copy, what)
            yield Claimed(copy.node, _holder(asked, copy, what), answers, report, (copy.node, copy.frame))


def _last_of_each(found: Iterable[Copy]) -> list[Copy]:
    """Of the state dicts that one name is given in a function, the last: what is put back is one mistake."""
    last: dict[object, Copy] = {}
    for copy in found:
        statement = copy.frame.flow.statement_of(copy.node)
        is_put_back = copy.what == "alias" and isinstance(statement, ast.Assign)
        key = ast.unparse(statement.targets[0]) if is_put_back else id(copy)
        last[copy.frame.function, key] = copy
    return list(last.values())


def _of_copy(asked: Asked, copy: Copy, what: Fate) -> Iterator[Answer]:
    """On what it stands that a copy waits on the GPU for nothing, the cheap questions first."""
    yield from _lasts(asked, copy, what)
    in_list = what.many and any(_container(one) == "list" for one in what.kept)
    if what.read is not None and not in_list:
        yield refuted(Question.READS, "it is computed with, changed or run", what.read.node)
    if what.unseen is not None and not what.many:
        yield refuted(Question.READS, "who gets it may compute with it", what.unseen.node)
    if what.returned is not None and not what.many:
        yield left_open(Question.READS, "who gets it may compute with it", what.returned.node)
    if copy.what == "network":
        yield from _of_network(copy, what)
    else:
        yield proven(Question.READS, "nothing computes with it")
        yield from _seen(copy)
    yield _on_device(asked, copy)
    matters = weights_matter(asked.evaluator, copy.network, "it", Verdict.OPEN)
    if what.many and copy.what != "network" and matters.verdict is not Verdict.PROVEN:
        matters = minor(Question.SIZE, "several are kept, and how large the network is, is not seen")
    yield matters
    yield from reached(asked.evaluator, copy.frame.function)


def _seen(copy: Copy) -> Iterator[Answer]:
    """What leaves it open whether a state dict is a network's."""
    if copy.network.kind not in ("module", "parameters"):
        yield left_open(Question.TENSOR, f"what `{ast.unparse(copy.source)}` is, the code does not show")
    yield from (left_open(Question.TENSOR, one.clause) for one in copy.network.assumptions)


def _of_network(copy: Copy, what: Fate) -> Iterator[Answer]:
    """What becomes of a whole network that is copied: who only saves it, or loads it, needs its weights alone."""
    if any(one.role == "written" for one in what.uses) and (what.saved or what.loaded):
        yield refuted(Question.READS, "it is an average of the weights, which is used")
    elif what.saved or what.loaded:
        clause = "the whole network is copied: perhaps it is run where that is not seen"
        yield left_open(Question.READS, clause)
    elif any(isinstance(one.owner, tuple) for one in what.kept) or not what.uses:
        yield refuted(Question.READS, "what is kept may be run where that is not seen")
    else:
        yield proven(Question.READS, "nobody runs it, saves it or puts it back")


def _lasts(asked: Asked, copy: Copy, what: Fate) -> Iterator[Answer]:
    """Whether a copy outlives the statement, and the step, that makes it."""
    flow = copy.frame.flow
    statement = flow.statement_of(copy.node)
    in_loop = [one for one in what.kept if _container(one) == "dict" and flow.loops(copy.node)]
    if in_loop and not what.many:
        by = in_loop[0].node
        yield refuted(Question.OUTLIVES, "a few of them are kept, one in the place of another", by)
    own = [one for one in what.uses if one.frame is copy.frame and one.role != "dropped"]
    block = flow.blocks[statement]
    if not what.kept and what.uses and len(own) == len(what.uses) and what.returned is None:
        last = max(flow.order.get(flow.statement_of(one.node), 0) for one in own)
        together = all(flow.blocks[flow.statement_of(one.node)] is block for one in own)
        if together and not _works_between(asked, copy, last):
            yield refuted(Question.OUTLIVES, "it is used right after, and waits for nothing")
        ends = (*(one for one in own if one.role == "deleted"), *what.loaded)
        rates = {one.rate for one in asked.multiplicity.of(copy.node, copy.frame)}
        if rates == {"step"} and any(set(flow.loops(copy.node)) <= set(flow.loops(one.node)) for one in ends):
            yield left_open(Question.OUTLIVES, "it lives for one step, and is needed at once", ends[0].node)
    if not what.uses and isinstance(statement, ast.Assign):
        yield left_open(Question.READS, "nothing is seen to read it")
    if not flow.loops(copy.node) and _after_training(flow, statement) and not what.kept:
        yield left_open(Question.OUTLIVES, "no step runs while it is there")


def _container(use: Use) -> str:
    """The kind of container that a copy is stored in; empty where it is none."""
    owner = use.owner
    return getattr(owner[1], "kind", "") if isinstance(owner, tuple) else ""


def _works_between(asked: Asked, copy: Copy, last: int) -> bool:
    """Whether anything is called between a copy and its last use that may be a step."""
    flow = copy.frame.flow
    first = flow.order[flow.statement_of(copy.node)]
    between = (one for one in flow.every_call if first < flow.order.get(flow.statement_of(one), 0) < last)
    return any(_may_train(asked, call, copy) for call in between)


def _may_train(asked: Asked, call: ast.Call, copy: Copy) -> bool:
    """Whether a call may take a step: any but those of Python itself, of libraries that are described, and of methods that are, as long
    as they are given nothing to call."""
    table, func = asked.evaluator.table, call.func
    if any(asked.evaluator.value_of(one, copy.frame).kind == "function" for one in call.args):
        return True
    target = asked.evaluator.value_of(func, copy.frame)
    if target.kind == "library":
        return target.ref.partition(".")[0] not in PYTHONS_OWN and table.function(target.ref) is None
    if not isinstance(func, ast.Attribute):
        return True
    kind = asked.evaluator.value_of(func.value, copy.frame).kind
    row = table.own(kind, func.attr) or table.own("tensor", func.attr)
    return row is None or row.does in ("step", "backward")


def _after_training(flow: Flow, statement: Any) -> bool:
    """Whether a statement in no loop comes after the last of the loops that train."""
    at = flow.order[statement]
    loops = [one for one in flow.blocks if isinstance(one, LOOPS)]
    calls = [call for name in ("backward", "step") for call in flow.calls.get(name, ())]
    trains = [loop for loop in loops if any(loop in flow.loops(call) for call in calls)]
    return bool(trains) and all(flow.order[loop] < at for loop in loops)


def _on_device(asked: Asked, copy: Copy) -> Answer:
    where = placed(asked.evaluator, copy.source, copy.frame)
    name = ast.unparse(copy.source)
    if where.device == "host":
        return refuted(Question.DEVICE, f"`{name}` is on the host then", where.at, asked.path_of(where.at))
    if where.device == "cuda":
        return proven(Question.DEVICE, f"`{name}` is on the GPU", where.at, asked.path_of(where.at))
    if where.how == "moved":
        clause = f"`{name}` is moved to a device, which the code does not name"
        return minor(Question.DEVICE, clause, where.at, asked.path_of(where.at))
    if copy.frame.function.cls is not None or copy.frame.function.parent is not None:
        clause = f"`{name}` is given from outside, and whether it is on a GPU by then is not shown"
        return left_open(Question.DEVICE, clause)
    return refuted(Question.DEVICE, f"nothing shows that `{name}` is on a GPU")


def _of_name(asked: Asked, copy: Copy, what: Fate) -> Iterator[Answer]:
    """On what it stands that another name for a network is taken for a copy: it is used when the network has been trained on."""
    uses = (one for one in what.uses if one.role in ("called", "given", "returned", "method", "attribute"))
    late = next((one for one in uses if _is_late(asked, copy, one)), None)
    if late is None:
        yield refuted(Question.READS, "it is not used after the loop, or the network does not train on in it")
    else:
        yield proven(Question.READS, "it is used after the loop, in which the network trains on", late.node)
    if (other := changed_between(copy)) is not None:
        yield refuted(Question.MEANT, "another network takes the place in between", other)
    yield from reached(asked.evaluator, copy.frame.function)


def _of_alias(asked: Asked, copy: Copy, what: Fate) -> Iterator[Answer]:
    """On what it stands that a state dict is taken for a copy: it is put back into the very network that it shows."""
    if copy.state is None:
        yield from _of_name(asked, copy, what)
        return
    if what.read is not None:
        yield refuted(Question.READS, "its entries are replaced or read one by one", what.read.node)
    if what.unseen is not None:
        yield refuted(Question.READS, "who gets it may replace its entries", what.unseen.node)
    back = [one for one in what.loaded if _is_same(asked, copy, one)]
    late = next((one for one in what.saved if _is_late(asked, copy, one)), None)
    if not back and late is not None:
        yield proven(Question.READS, "it is saved after the loop, in which the network trains on", late.node)
    elif not back:
        yield refuted(Question.READS, "it is not put back into the network that it is of")
    yield from _put_back(asked, copy, back) if back else _seen(copy)
    other = changed_between(copy)
    if other is not None:
        yield refuted(Question.MEANT, "another network takes the place in between", other)
    yield from _moved_after(asked, copy)
    yield from reached(asked.evaluator, copy.frame.function)


def _is_late(asked: Asked, copy: Copy, use: Use) -> bool:
    """Whether what some rounds of a loop take of a network that trains in it is used after the loop: it is what the last round left."""
    flow, function = copy.frame.flow, copy.frame.function
    block = flow.blocks[flow.statement_of(copy.node)]
    if any(isinstance(one, _LEAVES) for one in block.statements):
        return False
    at = place_in(function, use.node, use.frame)
    ends = [at] if at is not None else [one for one in flow.returns if one is not None]
    made = [node for node, frame in copy.network.origins if frame is copy.frame]
    trained = {loop for one in asked.steps.of(function) if one.work == "train" for loop in one.loops}
    return any(
        loop in trained
        and any(loop not in flow.loops(one) for one in ends)
        and any(loop in flow.loops(test) for test, _ in flow.conditions(copy.node))
        and not any(loop in flow.loops(node) for node in made)
        for loop in flow.loops(copy.node)
    )


def _put_back(asked: Asked, copy: Copy, back: list[Use]) -> Iterator[Answer]:
    flow = copy.frame.flow
    if back[0].frame.function is copy.frame.function and not flow.loops(copy.node):
        order = flow.order.get(flow.statement_of(back[0].node), 0)
        if not _works_between(asked, copy, order):
            yield refuted(Question.OUTLIVES, "nothing trains before it is put back")
    by = back[0].node if asked.is_here(back[0].frame) else None
    yield proven(Question.READS, "it is put back into the very network whose weights it shows", by)


def _moved_after(asked: Asked, copy: Copy) -> Iterator[Answer]:
    """A network that is moved afterwards has other tensors then: what its state dict shows are the old ones."""
    flow = copy.frame.flow
    at = flow.order[flow.statement_of(copy.node)]
    for call in flow.calls_on({key_of(copy.source)}, "cuda", "to", "cpu"):
        if flow.order[flow.statement_of(call)] > at:
            clause = "the network is moved in between, and keeps other tensors from then on"
            yield refuted(Question.MEANT, clause, call)
    where = placed(asked.evaluator, copy.source, copy.frame)
    if where.device == "?" and copy.frame.function.name == "__init__":
        clause = "the constructor is given the network: moved later, it keeps other tensors from then on"
        yield left_open(Question.DEVICE, clause)


def _is_same(asked: Asked, copy: Copy, use: Use) -> bool:
    """Whether a state dict is loaded into the network that it is of."""
    base = called_on(use.node)
    if base is None:
        return False
    key, own = key_of(base), key_of(copy.source)
    run, other = _run_through(base, use.frame), _run_through(copy.source, copy.frame)
    same, here, there = {key} & {own} | {run} & {other}, use.frame.function, copy.frame.function
    if any(one and (here is there or ("." in one and here.cls is there.cls)) for one in same):
        return True
    return bool(asked.evaluator.value_of(base, use.frame).origins & copy.network.origins)


def _run_through(node: ast.AST, frame: Frame) -> str | None:
    """The key of what a loop runs through that binds a name: `self.members` of `for member, weights in zip(self.members, taken)`."""
    reaching = frame.flow.reaching(node) if isinstance(node, ast.Name) else ()
    through = next((source_of(one, frame.flow)[0] for one in reaching if one.kind == "loop"), None)
    return key_of(called_on(through, "values", "items") or through) if through is not None else None


def _holder(asked: Asked, copy: Copy, what: Fate) -> str:
    """What keeps a copy, as the code spells it."""
    statement = copy.frame.flow.statement_of(copy.node)
    if isinstance(statement, ast.Assign):
        target = statement.targets[0]
        while isinstance(target, ast.Subscript):
            target = target.value
        return ast.unparse(target)
    return next((one.name for one in what.kept if one.name), ast.unparse(copy.source))


def _copy(asked: Asked, copy: Copy, what: Fate) -> Report:
    holder = _holder(asked, copy, what)
    source = asked.source(copy.state or copy.source)
    return Report(
        copy.node,
        f"`{holder}` keeps a copy of the weights of `{source}` on the GPU",
        "nothing computes with the copy; on the CPU it waits as well",
        Cost("one model on the GPU", "173 MiB for a 4-layer language model; H200, torch 2.11"),
        repair=lambda: _repair(asked, copy, what),
    )


def _alias(asked: Asked, copy: Copy, what: Fate) -> Report:
    holder = _holder(asked, copy, what)
    so = "loading it changes nothing" if what.loaded else "what is saved are the last weights"
    so = so if copy.state is not None else "what is used after the loop are the last weights"
    gives = "`state_dict()` gives the tensors of the model themselves"
    return Report(
        copy.node,
        f"`{holder}` is no copy: it changes with every step of training, so {so}",
        gives if copy.state is not None else f"it is another name for `{asked.source(copy.source)}`",
        "no memory, but the weights that were meant to be kept",
        Severity.ERROR,
        repair=lambda: _repair(asked, copy, what),
        claim=Claim("alias", device_only=True),
    )


def _repair(asked: Asked, copy: Copy, what: Fate) -> Repair | None:
    from gpulint.fix.nodes import expression

    if what.read is not None or copy.state is None:
        return None
    why_unsafe = ""
    if copy.what == "alias":
        why_unsafe = "other weights are loaded than before: those of the moment of the copy"
    elif what.unseen is not None or what.returned is not None or what.many:
        why_unsafe = "what else reads the copy gets its tensors on the CPU"
    if copy.cloned is not None:
        return by_methods(asked, (copy.cloned,), ("cpu",), "keep the copy on the CPU: `.cpu()`", why_unsafe)
    state = asked.source(copy.state, 200)
    new = expression(f"{{key: value.detach().cpu().clone() for key, value in {state}.items()}}")
    return Repair.unless(why_unsafe, "keep a copy on the CPU", (Replace(asked.node(copy.node), new),))
