from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from gpulint.rules._forwards import labels_positions

from gpulint.analysis.asked import Asked
from gpulint.analysis.domain.values import UNKNOWN, Value
from gpulint.analysis.evaluate.consumers import Use, consumers, consumers_of_definition
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.models.table import Row
from gpulint.analysis.project.file import Class, Function
from gpulint.analysis.queries.amounts import through_batches
from gpulint.analysis.queries.grad_mode import grad_mode
from gpulint.analysis.queries.graphs.backwards import backwards
from gpulint.analysis.queries.networks.forwards import Forward, forwards
from gpulint.analysis.queries.networks.runs import runs_of
from gpulint.analysis.queries.reached import reached
from gpulint.analysis.queries.stores.on_device import gives_dense, is_dense
from gpulint.analysis.syntax.flow import Definition
from gpulint.analysis.syntax.nodes import argument, called_on, keyword, last_name
from gpulint.answers import Answer, Question, left_open, minor, proven, refuted, until_refuted
from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import Claimed, Cost, Insert, Remove, Repair, Replace, Report, Rule

_MANY: Final = 1_000  # scores at each position
_KEPT: Final = frozenset({"stored", "returned", "too much", "saved"})
# What reads names without naming them.
_READS_NAMES: Final = frozenset("locals globals vars eval exec breakpoint embed set_trace".split())


class LateReleaseRule(Rule):
    """
    ## What it does
    Finds large outputs that nobody needs any more but that stay bound while the peak is reached: logits kept through
    `backward()`, or an evaluation's logits kept through the next forward; also a part of what a network gives that nobody reads, such as the
    logits beside the loss, or what goes by the name `_`.

    With a doubt it also tells of scores for each position whose number the code does not say, and where it is not seen what the
    loss saves.

    ## Why is this bad
    A name keeps its tensor until it is rebound. Logits over a vocabulary or over every pixel are often the largest
    tensor of the step, and cross-entropy does not need them for its backward: it saved their log-softmax.

    It is reported only where the code shows that the value is large (scores for each position or pixel, by the network that
    gives them or as they are laid out for the loss, there or in the network itself), that its last use comes before the peak, and that nothing else
    keeps it, such as a layer that has saved it for its backward. `del` at the end of the loop's body gains nothing: the peak is over, and it is reported like a name that
    stays bound.

    ## What it costs
    Logits of 500 MiB kept through `backward()`: peak 2.88 GiB, and 2.39 GiB with `del` before it, 17 % less; under bf16
    autocast 2.26 GiB and 2.01 GiB, 11 % less. `del` at the end of the loop's body: 2.88 GiB, no gain at all. In an
    evaluation loop under `no_grad`: 1.16 GiB, and 683 MiB with `del`, 42 % less (4-layer language model, NVIDIA H200,
    torch 2.11).

    ## Example
    ```python
    import torch
    import torch.nn.functional as F

    VOCABULARY = 50_257

    def train(model: torch.nn.Module, loader, optimizer):
        for tokens, targets in loader:
            logits = model(tokens)
            loss = F.cross_entropy(logits.view(-1, VOCABULARY), targets.view(-1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    ```

    ## Use instead
    ```python
    import torch
    import torch.nn.functional as F

    VOCABULARY = 50_257

    def train(model: torch.nn.Module, loader, optimizer):
        for tokens, targets in loader:
            logits = model(tokens)
            loss = F.cross_entropy(logits.view(-1, VOCABULARY), targets.view(-1))
            del logits
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    ```

    ## Fix safety
    The fix inserts `del` after the last use, or moves it there from behind the peak; nothing reads the name afterwards:
    safe. Unsafe beside `locals()`, `eval` and their like, and for a script's own name that one of its functions uses.
    """

    code = "GPU401"
    name = "late-release"
    severity = Severity.INFO
    runtime_claim = Claim("late")
    triggers = ((b"torch",), (b"for ", b"while "), (b"cross_entropy", b"argmax", b"criterion", b"oss"))
    doubts = True

    def claims(self, asked: Asked, options: Mapping[str, Any]) -> Iterator[Claimed]:
        for function in (asked.file.body, *asked.file.functions):
            for forward in forwards(asked.evaluator, function):
                uses = consumers(asked.evaluator, forward.call, forward.frame, "storage")
                bound = (one for one in uses if one.role == "bound" and one.frame is forward.frame)
                for use in bound:
                    late = _late(asked, forward, use.owner)
                    if late is not None:
                        answers = until_refuted(_answers(asked, late))
                        yield Claimed(late.last, late.names[0], answers, partial(_report, asked, late))


@dataclass(frozen=True, slots=True)
class _Late:
    """What a forward gives, or the part of it under `path`, by its `names`: `last` is the statement that needs it last, `peak` the backward
    through it, or the forward itself, which the next round runs; `freed` are statements that delete the names after that."""

    forward: Forward
    path: tuple[Any, ...]
    names: tuple[str, ...]
    uses: list[Use]
    last: Any
    peak: ast.Call
    freed: list[Any]
    gives_loss: bool
    is_read: bool


def _late(asked: Asked, forward: Forward, made: Definition) -> _Late | None:
    """What a name holds on to through a peak; None where something needs it by then, lets go of it before, or keeps it anyhow."""
    flow, frame, order = forward.frame.flow, forward.frame, forward.frame.flow.order
    around = (forward.call, *flow.ancestors(forward.call))
    if made.value not in around:
        return None  # another name of it
    uses = consumers_of_definition(asked.evaluator, made, frame, "storage")
    if frame.function.is_module:  # another function that reads the name is a doubt about the fix
        uses = [one for one in uses if _is_below(one, forward)]
    peak = _peak(asked, forward)
    if peak is None or any(one.role in _KEPT or not _is_below(one, forward) for one in uses):
        return None
    names = (one for one in ast.walk(peak) if isinstance(one, ast.expr))
    loss = {one for name in names for one in flow.reaching(name)}
    owners = [made, *(one.owner for one in uses if one.role == "bound" and one.frame is frame)]
    owners = [one for one in dict.fromkeys(owners) if one not in loss and _lasts(one, forward, peak)]
    read = [(flow.statement_of(use), use) for one in owners for use in flow.uses_of(one)]
    freed = [statement for statement, _ in read if isinstance(statement, ast.Delete)]
    needed = [statement for statement, _ in read if statement not in freed]
    unread = not (needed or made.path)
    if any(isinstance(one, ast.Lambda) for _, use in read for one in flow.ancestors(use)):
        return None  # which may read it whenever it is called
    if not owners or made in loss or unread or any(one.kind != "assign" for one in owners):
        return None
    last = max(needed, key=order.__getitem__, default=made.statement)
    first, end = order[made.statement], order[flow.statement_of(peak)]
    ends = end if end > first else max(order.values()) + 1
    in_time = all(first < order[one] < ends for one in needed) and all(order[one] > ends for one in freed)
    plain = isinstance(last, (ast.Assign, ast.AugAssign, ast.Expr))
    same_round = flow.loops(last) == flow.loops(made.statement)
    if not (in_time and plain and same_round) or flow.blocks[last] not in flow.around(made.statement):
        return None
    near = [made.value, *(flow.parents.get(use) for statement, use in read if statement not in freed)]
    given = keyword(forward.call, "labels") is not None
    if given and made.path[:1] == (0,) and _is_dense(asked, forward):
        return None  # its loss
    gives_loss = given or any(isinstance(one, ast.Attribute) and one.attr in ("loss", "item") for one in near)
    uses = list(_uses_of(asked, made, frame, given))
    keys = tuple(dict.fromkeys(one.key for one in owners))
    return _Late(forward, made.path, keys, uses, last, peak, freed, gives_loss, bool(needed))


def _lasts(made: Definition, forward: Forward, peak: ast.Call) -> bool:
    """Whether nothing else is given the name before the peak."""
    flow = forward.frame.flow
    *_, last = (one for one in flow.definitions[made.key] if one.statement is made.statement)
    if peak is forward.call:
        return last is made and flow.holds_from_before(made)  # else `_, x, _ = …`
    return last is made and flow.holds_at(made, flow.statement_of(peak))


def _is_loss_of(node: Any, first: bool) -> bool:
    """Whether it takes the loss out of what a network gives: `out.loss`, or `out[0]` where that comes first."""
    if isinstance(node, ast.Subscript):
        return first and isinstance(node.slice, ast.Constant) and node.slice.value == 0
    return isinstance(node, ast.Attribute) and node.attr == "loss"


def _peak(asked: Asked, forward: Forward) -> ast.Call | None:
    """The backward through what a forward gives, in the same round; the forward itself, where a round goes nowhere backward."""
    flow, frame = forward.frame.flow, forward.frame
    through = [one.call for one in backwards(asked.evaluator, frame.function)]
    loops = flow.loops(forward.call)
    if grad_mode(asked.evaluator, forward.call, frame).mode == "off":
        return forward.call if loops and not any(loops[0] in flow.loops(one) for one in through) else None
    after = [one for one in through if flow.loops(one) == loops and one.lineno > forward.call.lineno]
    return after[0] if after else None


def _is_below(use: Use, forward: Forward) -> bool:
    return forward.frame in use.frame.around


# -- what it stands on


def _answers(asked: Asked, late: _Late) -> Iterator[Answer]:
    given = list(_given_in(asked, late))
    late = replace(late, uses=[*late.uses, *_uses_inside(asked, given)])
    yield from _size(asked, late, given)
    runs = runs_of(asked.evaluator, late.forward.call, late.forward.frame)
    if late.peak is not late.forward.call:
        yield from _saved(asked, late)
    elif late.gives_loss or any(_loss(asked, one) for one in late.uses):
        clause = "the loss makes a second tensor of that size, which the round needs anyhow"
        yield refuted(Question.SIZE, clause)
    elif not any(through_batches(asked.evaluator, run) for run in runs):
        yield left_open(Question.SIZE, "that batches go through the network is not seen")
    yield from (left_open(Question.TENSOR, one.clause) for one in late.forward.network.assumptions)
    yield from reached(asked.evaluator, late.forward.frame.function)


def _size(asked: Asked, late: _Late, given_in: list[tuple[Any, Frame]]) -> Iterator[Answer]:
    if _is_dense(asked, late.forward) or any(is_dense(asked.evaluator, *one) for one in given_in):
        yield proven(Question.SIZE, "the network gives scores for each position, or for each pixel")
        return
    calls = ((one, bool(_loss(asked, one))) for one in late.uses if isinstance(one.node, ast.Call))
    given = ((one, is_loss) for one, is_loss in calls if is_loss or one.role == "given")
    widths = [width for one, is_loss in given for width in _laid_out(asked, one.node, one.frame, is_loss)]
    if not widths and late.gives_loss and labels_positions(late.forward.call):
        widths = [None]
    if not widths:
        yield refuted(Question.SIZE, "nothing shows that there are scores for each of many positions")
    widths += [width for one in given_in for width in _widths_of(asked, *one)]
    known = [one for one in widths if one is not None]
    if not known and _scores_what_it_embeds(asked.evaluator, late.forward.network):
        yield minor(Question.SIZE, "there is a score for each of what the network has an embedding of")
    elif not known:
        yield left_open(Question.SIZE, "how many scores there are for each position is not shown")
    elif max(known) < _MANY:
        yield refuted(Question.SIZE, f"there are {max(known)} scores for each position")
    else:
        yield proven(Question.SIZE, f"there are {max(known):,} scores for each position")


def _is_dense(asked: Asked, forward: Forward) -> bool:
    """Whether a network gives scores of each position, and is called as a whole."""
    base = getattr(forward.expression, "value", None)
    whole = asked.evaluator.value_of(base, forward.frame) if base is not None else UNKNOWN
    is_part = whole.kind == "module" and whole.ref is None
    is_whole = forward.expression is forward.call.func and not is_part
    return is_whole and gives_dense(asked.evaluator, forward.network, many=True)


def _row(asked: Asked, use: Use) -> Row | None:
    """The table's row of the loss or the layer that is given the scores, or of another operation."""
    if use.role != "given" or not isinstance(use.node, ast.Call):
        return use.row
    return asked.evaluator.calling.made_by(asked.evaluator.value_of(use.node.func, use.frame))


def _loss(asked: Asked, use: Use) -> str:
    """What a loss that is given the scores saves: `softmax` or `input`; empty where it is none of torch's."""
    row = _row(asked, use)
    return row.saves if row is not None else ""


def _laid_out(asked: Asked, call: Any, frame: Any, is_loss: bool) -> Iterator[int | None]:
    """The width of each layout by rows that scores are brought into for a loss: `scores.view(-1, width)`; None where it is not known.
    For what is not known to be a loss, only a cut by positions says something."""
    node, known = call, asked.evaluator.table.knows("tensor")
    while isinstance(node, (ast.Call, ast.Subscript, ast.Name)):
        if isinstance(node, ast.Name):
            whole = frame.flow.unaliased(node)
            node = whole if whole is not node else None
        elif isinstance(node, ast.Subscript):
            axes = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
            cuts = [one for one in axes[1:] if isinstance(one, ast.Slice) and not one.lower]
            if any(ast.unparse(one.upper) == "-1" for one in cuts if one.upper):
                yield None  # `scores[:, :-1]`: each position but the last
            node = node.value
        elif called_on(node) is not None and (row := known.get(last_name(node.func))) is not None:
            if row.does == "lays out" and is_loss:
                by_rows = called_on(node, "view", "reshape") is not None and len(node.args) == 2
                const = asked.evaluator.value_of(node.args[-1], frame).const if by_rows else None
                yield const if isinstance(const, int) and const > 0 else None
            node = called_on(node)
        else:
            node = argument(node, 0, "input")


def _given_in(asked: Asked, late: _Late) -> Iterator[tuple[Any, Frame]]:
    """What a network of the project gives under the names, as its own forward spells it."""
    evaluator, one = asked.evaluator, late.forward
    method = evaluator.method(one.network.ref, "forward")
    inner: Any = evaluator.enter(method, one.call, one.frame, one.network) if method is not None else None
    for returned in inner.flow.returns if inner is not None else ():
        if not evaluator.is_dead(returned, inner):
            yield from ((part, inner) for part in _parts(returned.value, late.path, inner))


def _parts(node: Any, path: tuple[Any, ...], frame: Frame) -> Iterator[Any]:
    """The expressions under a path in tuples, those in a tuple one by one."""
    whole = frame.flow.unaliased(node)
    if isinstance(whole, ast.Tuple):
        at = path[0] if path else slice(None)
        inside = whole.elts[at if isinstance(at, slice) else slice(at, at + 1 or None)]
        yield from (part for one in inside for part in _parts(one, path[1:], frame))
    elif node is not None and not path:
        yield node


def _uses_inside(asked: Asked, given: list[tuple[Any, Frame]]) -> Iterator[Use]:
    """What the network itself does with what it gives: it works out the loss. A name that a loop gives something else holds that."""
    for node, frame in given:
        flow = frame.flow
        reaching = [one for one in flow.reaching(node) if one.kind == "assign"]
        looped = [(one, set(flow.loops(one.statement))) for one in reaching]
        for made, around in looped:
            at = flow.order[made.statement]
            if not any(flow.order[one.statement] > at and loops - around for one, loops in looped):
                uses = _uses_of(asked, made, frame)
                yield from (one for one in uses if frame in one.frame.around and one.role not in _KEPT)


def _uses_of(asked: Asked, made: Definition, frame: Frame, first: bool = False) -> Iterator[Use]:
    """What is done with what a name is given: not with the loss in it, nor in the next round of a loop, where the name has been given more."""
    flow, at = frame.flow, frame.flow.order[made.statement]
    for node in flow.uses_of(made):
        if flow.order[flow.statement_of(node)] > at and not _is_loss_of(flow.parents[node], first):
            yield from consumers(asked.evaluator, node, frame, "storage")


def _widths_of(asked: Asked, node: Any, frame: Frame) -> Iterator[int | None]:
    """How many numbers the layers give that make what a network of the project gives, where nothing else does."""
    evaluator = asked.evaluator
    made = [one.value for one in frame.flow.reaching(node)] if isinstance(node, ast.Name) else [node]
    for one in made:
        layer = evaluator.value_of(one.func, frame) if isinstance(one, ast.Call) else UNKNOWN
        row = evaluator.calling.made_by(layer)
        if row is None or row.size == "loss":
            return
        for call, where in layer.calls:
            width = argument(call, 1, "out_features")
            const = evaluator.value_of(width, where).const if width is not None else None
            yield const if isinstance(const, int) else None


def _scores_what_it_embeds(evaluator: Evaluator, network: Value, depth: int = 3) -> bool:
    """Whether a network, or a part of it, has as many scores as embeddings: those of a vocabulary."""
    init = evaluator.constructed(network, network.ref) if isinstance(network.ref, Class) else None
    if init is None or not depth:
        return False
    calls = init.flow.calls
    rows = [argument(one, 0, "num_embeddings") for one in calls.get("Embedding", ())]
    widths = [argument(one, 1, "out_features") for one in calls.get("Linear", ())]
    spelled, scores = ({ast.unparse(one) for one in several if one is not None} for several in (rows, widths))
    parts = (evaluator.definition(one, init) for one in init.flow.definitions_of("assign") if "." in one.key)
    return not spelled.isdisjoint(scores) or any(
        one.kind == "module" and _scores_what_it_embeds(evaluator, one, depth - 1) for one in parts
    )


def _saved(asked: Asked, late: _Late) -> Iterator[Answer]:
    """Whether the graph keeps the scores for its backward, whoever lets go of their name."""
    for use in late.uses:
        row, saves = _row(asked, use), _loss(asked, use)
        if saves == "input":
            yield refuted(Question.BACKWARD, "the loss saves what it is given for its backward", use.node)
        if use.role == "given" and row is not None and row.weights not in ("", "none"):
            yield refuted(Question.BACKWARD, "a layer saves what it is given for its backward", use.node)
        keeps = use.role == "computed" and (use.row is None or use.row.graph == "keeps")
        if not saves and (use.role == "given" or keeps):
            clause = "whether the loss itself keeps them for its backward is not in sight"
            yield left_open(Question.BACKWARD, clause)
            return


# -- report


def _report(asked: Asked, late: _Late) -> Report:
    by_backward = late.peak is not late.forward.call
    names = ", ".join(f"`{one}`" for one in late.names)
    are, stay = ("are", "stay") if len(late.names) > 1 else ("is", "stays")
    figure = (
        "17 % of the peak for 500 MiB of logits, 2.88 against 2.39 GiB for a 4-layer language model; H200, torch 2.11"
        if by_backward
        else "42 % of an evaluation's peak, 1.16 GiB against 683 MiB for a 4-layer language model; H200, torch 2.11"
    )
    end = f"deleted on line {late.freed[0].lineno}, after the peak" if late.freed else "rebound"
    what = f"{names} {are} used here for the last time" if late.is_read else f"{names} {are} read by nothing"
    return Report(
        late.last,
        f"{what} but {stay} alive through {'backward' if by_backward else 'the next forward'}",
        f"a large output by its use, and nothing reads it again before its name is {end}",
        Cost("the output's own bytes, at the peak", figure),
        repair=lambda: _repair(asked, late),
    )


def _repair(asked: Asked, late: _Late) -> Repair | None:
    from gpulint.fix.nodes import delete

    changes: list[Any] = [Insert(asked.line(late.last), delete(late.names))]
    for statement in dict.fromkeys(late.freed):
        kept = [ast.unparse(one) for one in statement.targets if ast.unparse(one) not in late.names]
        node = asked.node(statement)
        changes.append(Replace(node, delete(tuple(kept))) if kept else Remove(node))
    names = ", ".join(late.names)
    what = f"move `del {names}` to its last use" if late.freed else f"insert `del {names}` after its last use"
    return Repair.unless(_other_readers(asked, late), what, tuple(changes))


def _other_readers(asked: Asked, late: _Late) -> str:
    """Who may read the names besides the function's own statements."""
    function: Function = late.forward.frame.function
    reads = next((one for one in _READS_NAMES if function.flow.calls.get(one)), "")
    others = asked.file.functions if function.is_module else ()
    other = next((one.name for one in others if one.words & {*late.names}), "")
    return f"`{reads}` may read the name" if reads else f"`{other}` may read the global name" if other else ""
