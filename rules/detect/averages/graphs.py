"""Whether an expression still has the graph of one of some names."""

from __future__ import annotations

from gpulint.analysis.code import ir
from gpulint.analysis.torch.names import KEEPS_GRAPH, REDUCTIONS

_KEEPING = KEEPS_GRAPH | REDUCTIONS


def keeps_graph(expr: ir.Expr, graphs: set[str]) -> bool:
    """Whether the expression still has the graph of one of the names: `.cpu()`, `.clone()` and indexing keep it."""
    if isinstance(expr, ir.Name):
        return expr.id in graphs
    if isinstance(expr, ir.Sub):
        return keeps_graph(expr.base, graphs)
    if isinstance(expr, ir.Attr):
        return expr.attr in ("T", "mT", "last_hidden_state") and keeps_graph(expr.base, graphs)
    if isinstance(expr, (ir.Seq, ir.Op)):
        if isinstance(expr, ir.Op) and expr.op not in ("+", "-", "*", "/", "@", "**", "neg"):
            return False
        return any(keeps_graph(part, graphs) for part in expr.children())
    if isinstance(expr, ir.Call) and expr.method in _KEEPING and isinstance(expr.func, ir.Attr):
        return keeps_graph(expr.func.base, graphs) or any(keeps_graph(arg, graphs) for arg in expr.args[:1])
    return False
