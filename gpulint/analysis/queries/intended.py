"""What a call that cleans up may be there for: what stands around this very call, in its loop, and what takes memory beside torch."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, Final

from gpulint.analysis.domain.values import UNKNOWN
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.project.file import Class, File, Function
from gpulint.analysis.queries.multiplicity import Repeats
from gpulint.analysis.queries.steps import Steps
from gpulint.analysis.syntax.nodes import LOOPS, called_on, last_name
from gpulint.answers import Answer, Question, left_open, refuted

# Figures that an emptied cache changes; those of what is allocated stay as they are.
_OF_RESERVED: Final = frozenset(
    "memory_reserved max_memory_reserved memory_cached max_memory_cached mem_get_info memory_stats memory_summary memory_snapshot".split()
)
_OF_ALLOCATED: Final = frozenset("memory_allocated max_memory_allocated".split())
_CLEANING: Final = frozenset("collect empty_cache synchronize ipc_collect reset_peak_memory_stats".split())


def intended(
    evaluator: Evaluator, steps: Steps, call: ast.Call, frame: Frame, repeats: Repeats
) -> Iterator[Answer]:
    """What speaks for it that a call that empties the cache, or collects, is meant where it stands."""
    yield from _failed(evaluator, call, frame, repeats)
    yield from _profiled(evaluator, repeats)
    yield from _measured(evaluator, frame, repeats)
    for node, where in ((call, frame), *repeats.calls):
        yield from _let_go_before(evaluator, node, where)
    package, by = imported(evaluator, frame.function.file, "sparse-libraries")
    if by is not None:
        clause = f"batches of `{package}` differ in size, and leave the cache in pieces"
        yield left_open(Question.MEANT, clause, by)
    if repeats.loop is not None:
        yield from _passed_over(steps, repeats)


def _failed(evaluator: Evaluator, call: ast.Call, frame: Frame, repeats: Repeats) -> Iterator[Answer]:
    for node, where in ((call, frame), *repeats.calls):
        if any(block.arm == "handler" for block in where.flow.around(node)):
            yield refuted(Question.MEANT, "it only runs where a step has failed", node)
        if where is repeats.frame:
            break
    for test, _ in repeats.flags:
        if _tells_of_failure(evaluator, test, repeats.frame):
            clause = f"it only runs where a step has failed: `{ast.unparse(test)}`"
            yield refuted(Question.MEANT, clause, test)


def _tells_of_failure(evaluator: Evaluator, test: Any, frame: Frame) -> bool:
    """Whether a condition is on what a handler of exceptions has set."""
    flow = frame.flow
    for one in ast.walk(test):
        if one not in flow.parents:
            return False
        if isinstance(one, ast.Name):
            for definition in flow.reaching(one):
                around = flow.around(definition.statement) if definition.statement in flow.blocks else ()
                if any(block.arm == "handler" for block in around):
                    return True
        elif isinstance(one, ast.Attribute):
            base = evaluator.value_of(one.value, frame)
            fields = evaluator.fields(base.ref, one.attr) if isinstance(base.ref, Class) else ()
            if any(function.name == "__exit__" for function, _ in fields):
                return True
    return False


def _profiled(evaluator: Evaluator, repeats: Repeats) -> Iterator[Answer]:
    """A loop that a profiler watches: each of its steps shall begin from the same state."""
    for block in repeats.frame.flow.around(repeats.loop) if repeats.loop is not None else ():
        for item in getattr(block.owner, "items", ()):
            made = item.context_expr
            target = evaluator.value_of(made.func, repeats.frame) if isinstance(made, ast.Call) else UNKNOWN
            if target.full_name.startswith(("torch.profiler.", "torch.autograd.profiler.")):
                clause = "a profiler watches these steps, which shall begin from the same state"
                yield left_open(Question.MEANT, clause, made)


def _measured(evaluator: Evaluator, frame: Frame, repeats: Repeats) -> Iterator[Answer]:
    """Where figures of memory are read, each shall begin from the same state."""
    functions = {frame.function, repeats.frame.function}
    functions |= {called for one in functions for called in _called_beside(evaluator, one, repeats.loop)}
    for function in functions:
        flow = function.flow
        for name in _OF_RESERVED & flow.calls.keys():
            calls = flow.calls[name]
            # of what is only compared, in the head of an `if`, nobody sees a figure
            if not all(isinstance(flow.statement_of(one), (ast.If, ast.While)) for one in calls):
                clause = f"`{name}` reads what is reserved, which an emptied cache changes"
                yield refuted(Question.MEANT, clause, calls[0])
        for name in _OF_ALLOCATED & flow.calls.keys():
            calls = [one for one in flow.calls[name] if repeats.loop in flow.loops(one)]
            figures = [each for one in calls for each in flow.named(one) or [one]]
            if not all(_is_shown(evaluator, function, one) for one in figures):
                clause = f"`{name}` is read here: perhaps each figure shall begin from the same state"
                yield left_open(Question.MEANT, clause, flow.calls[name][0])


def _is_shown(evaluator: Evaluator, function: Function, figure: ast.expr) -> bool:
    """Whether a figure is only written down for people, in a statement of its own: `print(memory_allocated())`."""
    statement = function.flow.statement_of(figure)
    outer = statement.value if isinstance(statement, ast.Expr) else None
    row = evaluator.row_of(outer, evaluator.root(function)) if isinstance(outer, ast.Call) else None
    return row is not None and row.reads


def beside_a_phase(evaluator: Evaluator, steps: Steps, call: ast.Call, frame: Frame) -> Any:
    """What in the blocks of the `if`s around, before a call, evaluates or saves a network: what stands there costs more."""
    flow = frame.flow
    statement = flow.statement_of(call)
    block, before, within = flow.blocks[statement], list[ast.stmt](), list[ast.stmt]()
    while isinstance(block.owner, (ast.If, ast.With)) and block.parent is not None:
        within += block.statements[: block.statements.index(statement)]
        if isinstance(block.owner, ast.If):
            before, within = [*before, *within], []
        statement, block = block.owner, block.parent
    events = [one for one in steps.of(frame.function) if one.work == "forward" and (one.within or one.loops)]
    calls = (node for one in before for node in ast.walk(one) if isinstance(node, ast.Call))
    for node in (one for one in calls if one in flow.parents):
        apart = flow.loops(node)[:1] != flow.loops(call)[:1]
        heavy = any(event.node is node and (event.within or apart) for event in events)
        takes = any(evaluator.value_of(given, frame).kind == "module" for given in node.args)
        unseen = takes and evaluator.value_of(node.func, frame).kind == "unknown"
        if heavy or unseen or last_name(node.func) in ("save", "save_checkpoint", "save_pretrained"):
            return node
    return None


def _called_beside(evaluator: Evaluator, function: Function, loop: Any) -> Iterator[Function]:
    """The functions of the project that a loop calls directly, if it stands in this function."""
    frame = evaluator.root(function)
    for call in function.flow.every_call:
        if loop in function.flow.loops(call):
            target = evaluator.value_of(call.func, frame).function
            if target is not None:
                yield target


def _let_go_before(evaluator: Evaluator, node: Any, frame: Frame) -> Iterator[Answer]:
    """What large thing is let go of by the statements right before."""
    flow = frame.flow
    statement = flow.statement_of(node)
    block = flow.blocks[statement]
    while isinstance(block.owner, ast.If) and block.statements[0] is statement and block.parent is not None:
        statement, block = block.owner, block.parent
    before = block.statements[: block.statements.index(statement)] if statement in block.statements else []
    for one in reversed(before):
        call: Any = one.value if isinstance(one, ast.Expr) else None
        on = called_on(call)
        if on is None:
            return
        name, is_network = last_name(call.func), evaluator.value_of(on, frame).kind == "module"
        to_host = name == "cpu" or (name == "to" and evaluator.calling.device(call, frame) == "host")
        if is_network and to_host:
            yield left_open(Question.MEANT, f"`{ast.unparse(on)}` is moved to the host just before", one)
        if name not in _CLEANING or (is_network and to_host):
            return


def _passed_over(steps: Steps, repeats: Repeats) -> Iterator[Answer]:
    """A step that fails, out of memory perhaps, and is passed over: the cache may be emptied for those."""
    flow = repeats.frame.flow
    for event in steps.of(repeats.frame.function):
        if repeats.loop not in event.loops:
            continue
        for block in flow.around(event.node):
            owner = block.owner
            if owner is repeats.loop:
                break
            is_tried = block.arm == "body" and isinstance(repeats.loop, LOOPS)
            for handler in owner.handlers if isinstance(owner, ast.Try) and is_tried else ():
                if not isinstance(handler.body[-1], (ast.Raise, ast.Return, ast.Break)):
                    clause = "a step that fails is passed over: the cache may be emptied for the next"
                    yield left_open(Question.MEANT, clause, handler)
                    return


def imported(evaluator: Evaluator, file: File, among: str) -> tuple[str, Any]:
    """The first library of a kind that a file imports, and what does; the empty one where it imports none."""
    for one in file.body.flow.definitions_of("import"):
        package = one.value.partition(".")[0]
        if evaluator.table.own(among, package) is not None:
            return package, one.node
    return "", None
