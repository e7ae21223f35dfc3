"""Signs in a function without a backward that what it collects is looked at, and not trained by."""

from __future__ import annotations

from gpulint.rules.detect.unseen.sights import Sight

from gpulint.analysis.code import ir
from gpulint.analysis.torch.methods import ADDING

_ENDS_ON_HOST = frozenset("cpu numpy tolist item".split())
_DRAWS = frozenset("choice multinomial categorical".split())
_DENSITIES = frozenset("log_prob log_probs rsample gumbel_softmax".split())


def looks_only(function: ir.Function, sight: Sight) -> str:
    """The sign, in a clause; empty where there is none. One of them leaves open whether a backward comes, and proves nothing:
    who trains by what was drawn asks for its density."""
    for statement, call in ir.calls(function.body):
        if call.method in ADDING and len(call.args) == 1 and _ends_on_host(call.args[0]):
            holder = call.func.base.path if isinstance(call.func, ir.Attr) else None
            if holder is not None and statement is not sight.statement:
                return f"what goes into `{holder}` beside it is moved to the host, which says that nobody trains by it"
    inside = [call for loop in sight.loops for _, call in ir.calls(loop.body)]
    methods = {call.method for call in inside}
    if methods & _DRAWS and not methods & _DENSITIES:
        drawn = min(methods & _DRAWS)
        return f"each round draws with `{drawn}`, through which no gradient goes, and may train by the rest"
    return ""


def _ends_on_host(expr: ir.Expr) -> bool:
    """`x.cpu()`, `x.detach().cpu().numpy()`, of a name."""
    if not (isinstance(expr, ir.Call) and isinstance(expr.func, ir.Attr) and expr.method in _ENDS_ON_HOST):
        return False
    base: ir.Expr = expr
    while isinstance(base, ir.Call) and isinstance(base.func, ir.Attr) and not base.args:
        base = base.func.base
    return isinstance(base, (ir.Name, ir.Attr, ir.Sub))
