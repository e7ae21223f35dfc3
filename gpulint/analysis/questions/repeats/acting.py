"""Whether what a network gives is the next action in an environment: then one state goes through it at a time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.questions.repeats.amounts import callers

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_DEPTH = 3  # callers of callers
_CHOOSING = re.compile(
    r"(?i)(?:^|_)act$|(?:get|select|choose|sample|take|pick|greedy|best|next)_?(?:\w*_)?actions?$"
)
_LEAST = 3  # state, reward and end at least are what an environment's step gives


def acts(file: FileAnalysis, function: ir.Function, call: ir.Call, depth: int = _DEPTH) -> bool:
    """Whether what `call` gives goes into the step of an environment, `state, reward, done, _ = env.step(action)`, in the
    function or in one of its callers; or the function is called after that, `get_action`."""
    if _CHOOSING.search(function.name):
        return True
    names: set[str] = set()
    returned = False
    for statement in ir.statements(function.body):
        roots = statement.expressions()
        if not any(_reads(root, names, call) for root in roots):
            continue
        if _steps(statement, names, call):
            return True
        if isinstance(statement, ir.Assign):
            names |= {target.id for target in targets(statement) if isinstance(target, ir.Name)}
        returned |= isinstance(statement, ir.Return)
    if not returned or not depth or function is file.module.body:
        return False
    return any(acts(home, caller, outer, depth - 1) for home, caller, outer in callers(file, function))


def _steps(statement: ir.Stmt, names: set[str], call: ir.Call) -> bool:
    if not isinstance(statement, ir.Assign):
        return False
    value = statement.value
    if not isinstance(value, ir.Call) or value.method != "step" or not isinstance(value.func, ir.Attr):
        return False
    several = any(isinstance(one, ir.Seq) and len(one.items) >= _LEAST for one in statement.targets)
    given = (*value.args, *(argument for _, argument in value.keywords))
    return several and any(_reads(one, names, call) for one in given)


def _reads(expr: ir.Expr, names: set[str], call: ir.Call) -> bool:
    return any(part is call or (isinstance(part, ir.Name) and part.id in names) for part in ir.walk(expr))
