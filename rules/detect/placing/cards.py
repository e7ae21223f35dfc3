"""Processes that choose their card when they are already on another: what has been put on the GPU by then has made a context
on the first card, which every rank does alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from gpulint.rules.detect.lifetimes.suspicion import Suspicion

from gpulint.analysis.code import ir
from gpulint.analysis.file.lookup import called, qualified, template
from gpulint.analysis.queries.settings import VISIBLE
from gpulint.analysis.questions.reached.processes import by_one_process
from gpulint.analysis.torch.contexts import CHOOSES, CHOOSES_BY_ITSELF, CHOOSES_WITHIN, MAKES_CONTEXT
from gpulint.analysis.torch.ranks import OF_SEVERAL
from gpulint.answers import Answer, Question, left_open, proven, refuted, until_refuted
from gpulint.rule import Cost, Insert, RelatedNode, Remove, Repair

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_DEPTH = 3
_MAKING = frozenset("tensor zeros ones empty full rand randn randint arange eye as_tensor linspace".split())


@dataclass(slots=True)
class _Process:
    """What has certainly run in a process by now."""

    touched: ir.Call | None = None
    at: ir.Stmt | None = None
    function: ir.Function | None = None
    chosen: bool = False
    inside: list[ir.Function] = field(default_factory=list)

    def copy(self) -> _Process:
        return _Process(self.touched, self.at, self.function, self.chosen, list(self.inside))

    def take(self, other: _Process) -> None:
        self.touched, self.at, self.function = other.touched, other.at, other.function
        self.chosen = other.chosen


@dataclass(frozen=True, slots=True)
class LateCard:
    """A card that is chosen behind what has used one."""

    function: ir.Function
    stmt: ir.Stmt
    call: ir.Call
    touched: ir.Call
    touched_at: ir.Stmt
    touched_in: ir.Function


def late_cards(file: FileAnalysis) -> list[Suspicion]:
    """The calls of `torch.cuda.set_device` of a file that come too late."""
    if not any("set_device" in evidence.called for evidence in file.evidence.values()):
        return []
    found: dict[int, LateCard] = {}
    for function in _roots(file):
        for late in _walk(file, function, function.body, _Process(inside=[function])):
            found.setdefault(id(late.call), late)
    return [_suspicion(file, late) for late in found.values()]


def _roots(file: FileAnalysis) -> Iterator[ir.Function]:
    """The module's body, and the functions that nothing in the file calls by name."""
    names = {name for evidence in file.evidence.values() for name in evidence.called}
    for function in file.module.functions:
        if function is file.module.body or function.name not in names:
            yield function


def _walk(
    file: FileAnalysis, function: ir.Function, block: list[ir.Stmt], process: _Process
) -> Iterator[LateCard]:
    for statement in block:
        yield from _own(file, function, statement, process)
        for number, inner in enumerate(statement.blocks()):
            if isinstance(statement, ir.With) and _chooses_within(file, function, statement):
                continue
            certain = number == 0 and (isinstance(statement, (ir.With, ir.Try)) or _is_main(statement))
            state = process if certain else process.copy()
            yield from _walk(
                file,
                function,
                inner,
                state,
            )
        if isinstance(statement, ir.Return):
            return


def _own(
    file: FileAnalysis, function: ir.Function, statement: ir.Stmt, process: _Process
) -> Iterator[LateCard]:
    """What a statement itself does, in the order of its calls: arguments before the call that is given them."""
    for call in sorted(_certain(statement), key=_end):
        name = qualified(file, function, call.func.path)
        if name in CHOOSES:
            if process.touched is not None and not process.chosen and name == "torch.cuda.set_device":
                assert process.at is not None
                assert process.function is not None
                yield LateCard(function, statement, call, process.touched, process.at, process.function)
            process.chosen = True
        elif process.touched is None and not process.chosen and _touches(file, function, call, name):
            process.touched, process.at, process.function = call, statement, function
        else:
            callee = called(file, function, call)
            if callee is not None and callee not in process.inside and len(process.inside) <= _DEPTH:
                process.inside.append(callee)
                yield from _walk(file, callee, callee.body, process)
                process.inside.pop()


def _end(call: ir.Call) -> tuple[int, int]:
    origin = call.origin
    return getattr(origin, "end_lineno", 0) or 0, getattr(origin, "end_col_offset", 0) or 0


def _certain(statement: ir.Stmt) -> list[ir.Call]:
    """The calls that a statement makes whenever it runs."""
    found: list[ir.Call] = []
    stack = list(statement.expressions())
    while stack:
        current = stack.pop()
        if isinstance(current, ir.Call):
            found.append(current)
        if isinstance(current, ir.Op) and current.op in ("if", "and", "or"):
            stack.append(current.operands[0])
        elif not isinstance(current, ir.Comp):
            stack.extend(current.children())
    return found


def _touches(file: FileAnalysis, function: ir.Function, call: ir.Call, name: str | None) -> bool:
    """Whether a call works on the card that is current, whichever that is."""
    if name is not None:
        if name in MAKES_CONTEXT:
            return not call.args and call.keyword("device") is None
        if name == "torch.distributed.barrier":
            return call.keyword("device_ids") is None and _over_nccl(file)
        made = name.startswith("torch.") and name.rpartition(".")[2] in _MAKING
        return made and _is_current(file, function, call.keyword("device"))
    if not isinstance(call.func, ir.Attr) or called(file, function, call) is not None:
        return False
    if call.method == "cuda":
        return not call.args and call.keyword("device") is None
    return call.method == "to" and bool(call.args) and _is_current(file, function, call.args[0])


def _over_nccl(file: FileAnalysis) -> bool:
    """Whether the file's process groups are of NCCL, and are not told their card when they are made."""
    made = [
        call
        for function in file.module.functions
        for _, call in ir.calls(function.body)
        if call.method == "init_process_group"
    ]
    nccl = any(template(part) == "nccl" for call in made for part in ir.walk(call))
    return nccl and not any(call.keyword("device_id") is not None for call in made)


def _is_current(file: FileAnalysis, function: ir.Function, device: ir.Expr | None, depth: int = 2) -> bool:
    """Whether a device is `"cuda"`, without a number: the card that is current."""
    if isinstance(device, ir.Call) and qualified(file, function, device.func.path) == "torch.device":
        return len(device.args) == 1 and _is_current(file, function, device.args[0], depth)
    if isinstance(device, ir.Name) and depth:
        values = [
            (scope, statement.value)
            for scope in {function, file.module.body}
            for statement in ir.statements(scope.body)
            if isinstance(statement, ir.Assign) and any(t.path == device.id for t in statement.targets)
        ]
        if any(param.name == device.id for param in function.params) or len(values) != 1:
            return False
        scope, value = values[0]
        return _is_current(file, scope, value, depth - 1)
    return device is not None and template(device) == "cuda"


def _chooses_within(file: FileAnalysis, function: ir.Function, statement: ir.With) -> bool:
    return any(
        isinstance(item, ir.Call) and qualified(file, function, item.func.path) in CHOOSES_WITHIN
        for item, _ in statement.items
    )


def _is_main(statement: ir.Stmt) -> bool:
    return isinstance(statement, ir.If) and any(
        isinstance(part, ir.Name) and part.id == "__name__" for part in ir.walk(statement.test)
    )


# --- what the claim stands on ---------------------------------------------------------------------------------------


def _suspicion(file: FileAnalysis, late: LateCard) -> Suspicion:
    return Suspicion(
        late.call,
        "torch.cuda.set_device",
        "the card is chosen when the process has used the first one already",
        "what goes to `cuda` before that goes to card 0: every rank makes a context there, which stays as long as it runs",
        Cost(
            "a context on card 0 for each rank that has another one",
            "526 MiB for `torch.zeros(1).cuda()`, 618 MiB for what is made there; H200, torch 2.11",
        ),
        until_refuted(_answers(file, late)),
        related=(RelatedNode("the first card is used here", late.touched),),
        repair=partial(_repair, late),
    )


def _answers(file: FileAnalysis, late: LateCard) -> Iterator[Answer]:
    chosen = late.call.argument(0, "device")
    if isinstance(chosen, ir.Const) and chosen.value in (0, "cuda:0", "cuda"):
        yield refuted(Question.DEVICE, "it chooses the first card, which is the one in use")
    if isinstance(chosen, ir.Const):
        yield refuted(Question.REACHED, "it is the same card for all processes")
    if by_one_process(late.touched_in, late.touched_at):
        yield refuted(Question.REACHED, "only one process has used the first card before")
    strings = {text for evidence in file.evidence.values() for text in evidence.strings}
    if VISIBLE in strings:
        yield refuted(Question.DEVICE, "the program limits the cards that a process sees")
    words = {word for evidence in file.evidence.values() for word in evidence.words}
    if words & CHOOSES_BY_ITSELF:
        yield left_open(Question.DEVICE, "a library may have chosen the card before")
    else:
        yield proven(
            Question.DEVICE, "what has been used is card 0, of which nothing else is said", late.touched
        )
    if words & OF_SEVERAL or "LOCAL_RANK" in strings or "local_rank" in (getattr(chosen, "path", None) or ""):
        yield proven(Question.REACHED, "the file is of a program of several processes")
    else:
        yield left_open(Question.REACHED, "that several processes run it is not shown")


def _repair(late: LateCard) -> Repair | None:
    """The choice before the first use, where all that it needs is there by then."""
    alone = isinstance(late.stmt, ir.ExprStmt) and late.stmt.value is late.call
    if late.function is not late.touched_in or not alone:
        return None
    block = next(
        (b for b in ir.every_block(late.function.body) if late.stmt in b and late.touched_at in b), None
    )
    if block is None:
        return None
    between = block[block.index(late.touched_at) : block.index(late.stmt)]
    needed = {part.path.partition(".")[0] for part in ir.walk(late.call) if part.path is not None}
    bound = {
        (target.path or "").partition(".")[0]
        for statement in ir.statements(between)
        if isinstance(statement, (ir.Assign, ir.AugAssign, ir.For))
        for target in (statement.targets if isinstance(statement, ir.Assign) else (statement.target,))
    }
    if needed & bound:
        return None
    why = "what is made between the two is on the rank's own card then"
    changes = (Insert(late.touched_at.line, late.stmt.line, after=False), Remove(late.stmt.node))
    return Repair("unsafe", "choose the card first", changes, why)
