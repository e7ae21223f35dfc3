"""Where grad can be switched off for some forwards without touching anything else.

A decorator covers all that a function does, and changes what the function is for whoever looks at it; a `with` around a
loop covers whatever the loop calls. Both are for code that is seen to need no grad. Else only the forwards' own statements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.questions.backward.cutting import mixes
from gpulint.analysis.questions.backward.under_calls import BackwardUnderCalls
from gpulint.analysis.questions.grad.strangers import Strangers
from gpulint.analysis.values.values import Kind, ParamToken, Val

if TYPE_CHECKING:
    from gpulint.analysis.file.facts import Forward, FunctionFacts
    from gpulint.analysis.file.program import FileAnalysis

_SIMPLE = (ir.Assign, ir.AugAssign, ir.ExprStmt, ir.Return)
# Decorators that leave the function what it is, or only call it.
_PLAIN_DECORATORS = frozenset(
    "property staticmethod classmethod abstractmethod cached_property override final wraps lru_cache cache".split()
)

# Words of code that reads a function's parameters without looking behind its decorators.
_READING_PARAMETERS = frozenset({"getfullargspec", "getargspec", "co_varnames", "co_argcount"})


@dataclass(frozen=True, slots=True)
class Cover:
    """What to put under no_grad: the function (`whole`), or runs of statements that follow one another in a block.
    `doubt` says in one clause what may want grad all the same: unseen code that runs under it or gets what it gives."""

    whole: bool
    runs: tuple[tuple[ir.Stmt, ...], ...] = ()
    loop: bool = False
    doubt: str = ""


class Guarding:
    """Chooses covers in one file."""

    def __init__(self, file: FileAnalysis) -> None:
        self._file = file
        self._strangers = Strangers(file, file.function_facts)
        self._backward = BackwardUnderCalls()

    def cover(self, facts: FunctionFacts, forwards: Sequence[Forward]) -> Cover | None:
        """The cover of some forwards of a function, None where no statement of theirs can be put under a `with`, or a backward
        may run under it."""
        function = facts.function
        if function.name == "<lambda>" or any(self._backward.of_forward(forward) for forward in forwards):
            return None
        if (
            facts.all_evaluation
            and self._may_be_decorated(function)
            and not self._gives_back_graphs(function)
            and not self._strange(function, function.body)
        ):
            return Cover(whole=True, doubt=_wanted(function, forwards))
        loop = _shared_loop(forwards)
        if loop is not None and not _suspends([loop]) and not self._strange(function, [loop]):
            return Cover(False, ((loop,),), loop=True, doubt=_wanted(function, forwards))
        return self._narrow(facts, forwards)

    def statement(self, function: ir.Function, statement: ir.Stmt) -> Cover | None:
        """The cover of one statement."""
        if not isinstance(statement, _SIMPLE) or _suspends([statement]):
            return None
        if any(self._backward.of_call(function, call) for call in ir.own_calls(statement)):
            return None
        return Cover(False, ((statement,),), doubt=self._strange(function, [statement]))

    def _strange(self, function: ir.Function, block: list[ir.Stmt]) -> str:
        """What speaks against grad being off for some statements; empty where all that they call is harmless."""
        stranger = self._strangers.among(function, block)
        return f"`{stranger}` is not seen, and may need grad" if stranger is not None else ""

    def _narrow(self, facts: FunctionFacts, forwards: Sequence[Forward]) -> Cover | None:
        """The statements of the forwards alone, with what stands between two of them where that is harmless."""
        function = facts.function
        wanted = {id(forward.stmt): forward.stmt for forward in forwards}
        if not all(isinstance(statement, _SIMPLE) for statement in wanted.values()):
            return None
        if _suspends(list(wanted.values())):
            return None
        if not facts.all_evaluation and any(_is_mixed(facts, forward) for forward in forwards):
            return None
        runs: list[tuple[ir.Stmt, ...]] = []
        for block in ir.every_block(function.body):
            runs += self._runs(facts, block, wanted.keys())
        if sum(id(statement) in wanted for run in runs for statement in run) != len(wanted):
            return None  # a statement that stands in no block of the function: a lambda's, a comprehension's
        strange = self._strange(function, list(wanted.values()))
        return Cover(False, tuple(runs), doubt=strange or _wanted(function, forwards))

    def _runs(
        self, facts: FunctionFacts, block: list[ir.Stmt], wanted: Set[int]
    ) -> Iterator[tuple[ir.Stmt, ...]]:
        run: list[ir.Stmt] = []
        between: list[ir.Stmt] = []
        for statement in block:
            if id(statement) in wanted:
                run += [*between, statement]
                between = []
            elif run and self._may_go_along(facts, statement):
                between.append(statement)
            elif run:
                yield tuple(run)
                run, between = [], []
        if run:
            yield tuple(run)

    def _may_go_along(self, facts: FunctionFacts, statement: ir.Stmt) -> bool:
        """Whether a statement between two forwards loses nothing under no_grad: in a function that wants no graph at all."""
        simple = isinstance(statement, _SIMPLE) and not _suspends([statement])
        return simple and facts.all_evaluation and not self._strange(facts.function, [statement])

    # --- the decorator -------------------------------------------------------------------------------------------

    def _gives_back_graphs(self, function: ir.Function) -> bool:
        """Whether what the function returns has the graph of a parameter by more than a network: `cat([x, net(x).detach()])`.
        Under a decorator that would be cut as well."""
        summary = self._file.summary(function)
        value = summary.returns if summary is not None else None
        params = {param.name for param in function.params}
        return value is not None and any(
            expr.path not in params and _has_given_graph(part)
            for statement in ir.statements(function.body)
            if isinstance(statement, ir.Return) and statement.value is not None
            for expr, part in _side_by_side(statement.value, value)
        )

    def _may_be_decorated(self, function: ir.Function) -> bool:
        if function.name == "<module>" or function.is_async:
            return False
        if any(_last(item) not in _PLAIN_DECORATORS for item in function.decorators):
            return False
        if self._parameters_are_read(function):
            return False
        if any(
            uses_as_value(root, function)
            for other in self._file.module.functions
            for statement in ir.statements(other.body)
            for root in statement.expressions()
        ):
            return False
        project = self._file.project
        return project is None or not project.uses_as_value(self._file.filename, function)

    def _parameters_are_read(self, function: ir.Function) -> bool:
        """Whether code beside the function, or beside a class that it stands in or inherits from, asks functions for their
        parameters: a decorated one would answer with its wrapper's."""
        info = self._file.class_of(function)
        homes = {self._file} if info is None else {self._file, *(part.home for part in info.ancestors())}
        return any(
            evidence.words & _READING_PARAMETERS for home in homes for evidence in home.evidence.values()
        )


def _side_by_side(expr: ir.Expr, value: Val) -> list[tuple[ir.Expr, Val]]:
    """What is returned with its value, one by one where there are several."""
    if isinstance(expr, ir.Seq) and value.items is not None and len(value.items) == len(expr.items):
        return list(zip(expr.items, value.items, strict=True))
    return [(expr, value)]


def _has_given_graph(value: Val) -> bool:
    """Whether a value is made of a parameter, and of no network's result."""
    made = value.kind in (Kind.SYMBOL, Kind.GRAPH) and not value.sites
    return made and any(isinstance(token, ParamToken) for token in value.tokens)


def _last(expr: ir.Expr) -> str:
    if isinstance(expr, ir.Call):
        return expr.method
    return expr.attr if isinstance(expr, ir.Attr) else expr.path or ""


def uses_as_value(root: ir.Expr, function: ir.Function) -> bool:
    """Whether an expression does anything with the function but call it: hands it on, reads its `__code__`."""
    called = {id(part.func) for part in ir.walk(root) if isinstance(part, ir.Call)}
    return any(
        id(part) not in called
        and (
            (isinstance(part, ir.Attr) and part.attr == function.name and function.cls is not None)
            or (isinstance(part, ir.Name) and part.id == function.name and function.cls is None)
        )
        for part in ir.walk(root)
    )


def _wanted(function: ir.Function, forwards: Sequence[Forward]) -> str:
    """Who may go backward through what the forwards give, in one clause; empty where nobody gets it with its graph."""
    for forward in forwards:
        path = forward.module.path or "the model"
        if forward.result.escaped:
            return f"what `{path}` gives goes to code that is not seen, which may differentiate it"
        if forward.result.stored:
            return f"what `{path}` gives is stored where others may differentiate it"
        if forward.result.returned and not forward.result.read_by_callers:
            return f"`{function.name}` returns what `{path}` gives, and a caller may differentiate it"
    return ""


def _is_mixed(facts: FunctionFacts, forward: Forward) -> bool:
    """Whether the statement makes a graph besides, which a backward may want."""
    beside = (other for other in facts.forwards if other.stmt is forward.stmt and other.result.freed)
    return any(beside) or mixes(facts, forward)


def _shared_loop(forwards: Sequence[Forward]) -> ir.Stmt | None:
    """The outermost loop of all the forwards, where it is one that only evaluates."""
    loops = {id(forward.loops[0].stmt) if forward.loops else 0 for forward in forwards}
    first = forwards[0]
    if len(loops) != 1 or not first.loops or not all(forward.mode.loop_is_evaluation for forward in forwards):
        return None
    return first.loops[0].stmt


def _suspends(block: list[ir.Stmt]) -> bool:
    """Whether the function may be left in the middle of the statements, so that others run with grad off."""
    return any(
        isinstance(part, ir.Wrapper) and part.kind in ("yield", "yield from", "await")
        for statement in ir.statements(block)
        for part in ir.own_parts(statement)
    )
