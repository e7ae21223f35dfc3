"""For how long something adds up: after how many rounds a loop starts it anew, `if step % args.every == 0: total = 0`, and
over how many steps the nodes of freed graphs can pile up in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import is_periodic, resets
from gpulint.analysis.questions.repeats.amounts import is_called_in_a_loop
from gpulint.analysis.questions.size.constructing import Constructing
from gpulint.answers import Answer, Question, left_open, unweighed

if TYPE_CHECKING:
    from gpulint.analysis.file.facts import Loop
    from gpulint.analysis.file.program import FileAnalysis

_FEW_GRAPHS = 4
MANY = 32  # rounds; gradients are accumulated over fewer, a log line is written after more


def rounds_between_resets(
    file: FileAnalysis, function: ir.Function, loop: ir.For | ir.While, path: str
) -> int | None:
    """How many rounds lie between two resets, where each stands under a condition that comes true at equal intervals and the
    program says how long these are; for an option of the command line, what it is by default."""
    conditions = _resetting(loop, path)
    found = [number for one in conditions if (number := _rounds_between(function, one.test))]
    return min(found) if conditions and len(found) == len(conditions) else None


def may_be_of_one_round(
    file: FileAnalysis, function: ir.Function, loop: ir.For | ir.While, path: str
) -> Answer | None:
    """What leaves it open whether more than one round adds to what is started anew every so many rounds: their number is an option
    that is 1 by default, or, which weighs less, nothing says how many. None where more rounds do."""
    conditions = [one for one in _resetting(loop, path) if is_periodic(one.test)]
    rounds = rounds_between_resets(file, function, loop, path)
    if not conditions or (rounds or 0) > 1:
        return None
    if rounds is None:
        clause = f"after how many rounds `{path}` is started anew is not seen, and it may be each"
        return unweighed(Question.REPEATS, clause, conditions[0])
    return left_open(Question.REPEATS, f"`{path}` is started anew in each round, by default", conditions[0])


def _resetting(loop: ir.For | ir.While, path: str) -> list[ir.If]:
    """The conditions of a loop's own body under which something is started anew; none where it also is without one."""
    conditions = [
        statement
        for statement in loop.body
        if isinstance(statement, ir.If) and path in resets(statement.body) and not statement.orelse
    ]
    others = [statement for statement in loop.body if statement not in conditions]
    return [] if path in resets(others) else conditions


def few_nodes(
    file: FileAnalysis, stmt: ir.Stmt, holder: str, loops: tuple[Loop, ...], birth: Loop | None
) -> Answer | None:
    """What leaves it open whether the nodes of freed graphs pile up in a holder: it is made anew in each step, or for each
    batch, or is given something every so many rounds only. None where they do. `loops` are those that the statement fills
    it in, outermost first, and `birth` the loop that makes it, if one does."""
    loop = _loop_of_a_few_steps(file, holder, loops, birth)
    if loop is not None:
        clause = "the graphs behind it are freed, and over how many steps their nodes pile up is not shown"
        return left_open(Question.REPEATS, clause, loop.stmt)
    if birth is not None and birth.over_data and not birth.over_pairs:
        clause = f"`{holder}` is made anew for each batch, and the graphs behind it are freed"
        return left_open(Question.REPEATS, clause, birth.stmt)
    condition = _condition_of_some_rounds(stmt, loops[-1]) if loops else None
    if condition is not None:
        clause = "the graphs behind it are freed, and only every so many rounds one is added"
        return left_open(Question.REPEATS, clause, condition)
    return None


def few_graphs(file: FileAnalysis, loops: tuple[Loop, ...]) -> Answer | None:
    """What leaves it open whether live graphs come to much in a holder: its loops have two or three rounds, as the text says,
    `for _ in range(n)` after `n = 3`. None where they have more."""
    rounds = 1
    for loop in loops:
        counted = loop.stmt.iterable if isinstance(loop.stmt, ir.For) else None
        if isinstance(counted, ir.Call) and counted.method == "tqdm" and counted.args:
            counted = counted.args[0]
        if not isinstance(counted, ir.Call) or counted.method not in ("range", "trange"):
            return None
        number = _number_of(loop.function, counted.args[0]) if len(counted.args) == 1 else None
        if number is None:
            return None
        rounds *= number
    if not loops or rounds > _FEW_GRAPHS:
        return None
    return unweighed(Question.REPEATS, f"it holds {rounds} graphs at most, as the text says", loops[0].stmt)


def _loop_of_a_few_steps(
    file: FileAnalysis, holder: str, loops: tuple[Loop, ...], birth: Loop | None
) -> Loop | None:
    """The loop whose rounds something holds, where it is made anew again and again, and the loops in between that train count
    to a variable: none goes through data. A loop inside of these goes through the parts of what one round has made."""
    training = [loop for loop in loops if loop.backwards or loop.steps] or loops
    if not training or any(loop.over_data or not loop.counts or loop.counts_all for loop in training):
        return None
    function = training[-1].function
    local = "." not in holder and holder.partition("[")[0] in file.evidence[function].assigned
    anew = birth is not None or (local and is_called_in_a_loop(file, function))
    return training[-1] if anew else None


def _condition_of_some_rounds(stmt: ir.Stmt, loop: Loop) -> ir.If | None:
    """`if step % every == 0:` around what is added in a loop. Where an optimizer steps under it too, these are the steps."""
    for statement in ir.statements(loop.stmt.body):
        if isinstance(statement, ir.If) and is_periodic(statement.test):
            inside = list(ir.statements(statement.body))
            steps = any(call.method == "step" for one in inside for call in ir.own_calls(one))
            if stmt in inside and not steps:
                return statement
    return None


def _rounds_between(function: ir.Function, test: ir.Expr) -> int | None:
    """How many rounds lie between two in which a condition holds that asks for a remainder: by a constant, a name bound once, a
    parameter's default, or a command line's; None where it asks for none, or the divisor is not seen."""
    divisors = [part.operands[1] for part in ir.walk(test) if isinstance(part, ir.Op) and part.op == "%"]
    known = [number for one in divisors if (number := _number_of(function, one)) is not None]
    return min(known, default=None)


def _number_of(function: ir.Function, expr: ir.Expr) -> int | None:
    """The whole number that an expression of a function is, as far as constants and defaults tell."""
    param = next((param for param in function.params if param.name == expr.path), None)
    given = expr if param is None else param.default
    number = None if given is None else Constructing().number(function, given)
    return number if isinstance(number, int) else None
