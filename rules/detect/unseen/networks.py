"""Networks whose class is not seen: what shows that an object is one, and that a call runs it.

The interpreter follows a network where it sees its class, or where the network itself is called. Here are the others:
`model.evaluation_step(x)`, `self._forward(batch)`, `extract(model, paths)`. What the object is, the program shows by how
it treats it; what the call does, the called function shows where it can be found, in this file or anywhere in the project.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.file.classes import ClassInfo, is_abstract
from gpulint.analysis.file.frozen_classes import is_made_frozen
from gpulint.analysis.file.lookup import called, class_made, qualified
from gpulint.analysis.file.reaching import fits
from gpulint.analysis.questions.grad.frozen_networks import is_frozen
from gpulint.analysis.questions.grad.no_graph import is_weightless
from gpulint.analysis.torch import frameworks
from gpulint.analysis.torch.roles import AUXILIARY, NETWORK, NETWORKS, RUNS, RUNS_NOT
from gpulint.analysis.values.values import Kind
from gpulint.answers import Answer, Question, left_open, proven, refuted

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_SWITCHES = frozenset({"no_grad", "inference_mode", "set_grad_enabled"})
_DEPTH = 3
_ALIKE = 4  # methods of one name in a project: of more, no one knows which is meant


class Known(Enum):
    """How an object is known to be a network."""

    TREATED = "treated"  # eval(), parameters(), an annotation
    PART = "part"  # of an object that is treated so
    NAMED = "named"
    NOT = "not"


@dataclass(frozen=True, slots=True)
class Run:
    """A call that runs a network as far as can be told. `path` is the network's, or the object's whose method it is;
    `answers` say what is known of it: that it runs one, and that it leaves grad as it is."""

    call: ir.Call
    path: str
    answers: tuple[Answer, ...]
    of_name: bool = False  # a method whose class is not seen: `Networks.by_name` asks its namesakes


class Networks:
    """What is known of the networks of one file."""

    def __init__(self, file: FileAnalysis) -> None:
        self._file = file
        self._runs: dict[ir.Function, bool] = {}
        self._guards: dict[ir.Function, bool] = {}
        self._methods: dict[str, list[ir.Function]] = {}  # of the project, by name

    # --- objects -------------------------------------------------------------------------------------------------

    def known(self, function: ir.Function, path: str) -> Known:
        """How the object of a path is known to be a network in a function."""
        if self._treated(function, path):
            return Known.TREATED
        parts = path.split(".")
        shortest = 2 if _is_own(function, parts[0]) else 1
        for length in range(len(parts) - 1, shortest - 1, -1):
            if self._treated(function, ".".join(parts[:length])):
                return Known.PART
        return Known.NAMED if NETWORK.search(parts[-1].partition("[")[0]) else Known.NOT

    def _treated(self, function: ir.Function, path: str) -> bool:
        if self._file.treated_as_module(function, path):
            return True
        param = next((param for param in function.params if param.name == path), None)
        value = self._file.param_value(function, param) if param is not None else None
        return value is not None and value.kind is Kind.MODULE

    # --- calls ---------------------------------------------------------------------------------------------------

    def run(self, function: ir.Function, call: ir.Call) -> Run | None:
        """What a call runs, where that is a network for all that is known; None where nothing says so."""
        if not (call.args or call.keywords):
            return None
        callee = self.callee(function, call)
        if callee is not None:
            return self._of_function(function, call, callee)
        if isinstance(call.func, ir.Attr) and call.func.base.path is not None:
            return self._of_method(function, call, call.func.base.path)
        if isinstance(call.func, ir.Sub) and call.func.base.path is not None:
            return self._of_table(function, call, call.func.base.path)
        return None

    def _of_table(self, function: ir.Function, call: ir.Call, table: str) -> Run | None:
        """`models["encoder"](x)`, of a table that the function goes through as through networks, `for m in models.values():
        m.eval()`, or that is called like one of networks."""
        if self._goes_through_networks(function, table):
            return Run(call, table, (proven(Question.GRAPH, f"what `{table}` holds is treated as networks"),))
        if not NETWORKS.search(table):
            return None
        return Run(
            call, table, (left_open(Question.GRAPH, f"only its name says that `{table}` holds networks"),)
        )

    def _goes_through_networks(self, function: ir.Function, table: str) -> bool:
        modules = self._file.evidence[function].modules
        return any(
            isinstance(statement, ir.For)
            and any(part.path == table for part in ir.walk(statement.iterable))
            and any(target.path in modules for target in targets(statement))
            for statement in ir.statements(function.body)
        )

    def _of_function(self, function: ir.Function, call: ir.Call, callee: ir.Function) -> Run | None:
        name = call.func.path or call.method
        if callee is function or RUNS_NOT.search(callee.name) or not self.runs(callee):
            return None
        answers: tuple[Answer, ...]
        made = self._made(function, call)
        if made is not None and made[0].is_module and is_made_frozen(*made):
            answers = (refuted(Question.TRAINED, f"`{made[0].cls.name}` freezes its parameters by itself"),)
        elif frozen := self._given_frozen(function, call):
            answers = (refuted(Question.TRAINED, f"`{frozen}`, which is handed over, is frozen"),)
        elif self.guards(callee):
            answers = (refuted(Question.GRAD, f"`{name}` switches grad off by itself"),)
        else:
            answers = (
                proven(Question.GRAPH, f"`{name}` runs a network"),
                proven(Question.GRAD, f"nothing in `{name}` switches grad off"),
            )
        return Run(call, name, answers)

    def _given_frozen(self, function: ir.Function, call: ir.Call) -> str:
        """The network that a call is given, where it is frozen, and no other is given; else empty."""
        given = [
            arg.path for arg in (*call.args, *(value for _, value in call.keywords)) if arg.path is not None
        ]
        networks = [path for path in given if self.known(function, path) is not Known.NOT]
        home: FileAnalysis = function.home
        return networks[0] if len(networks) == 1 and is_frozen(home, function, networks[0]) else ""

    def _of_method(self, function: ir.Function, call: ir.Call, base: str) -> Run | None:
        name = call.method
        if not RUNS.search(name) or RUNS_NOT.search(name) or base in self._file.module.imports:
            return None
        known = self.known(function, base)
        if known is Known.NOT:
            return None
        return Run(call, base, (_about(known, base),), of_name=True)

    def by_name(self, run: Run) -> Iterator[Answer]:
        """What the project's methods of that name say about grad, where only the name says which it is. They may have to be
        read for that: it is asked last."""
        if not run.of_name:
            return
        base, name = run.path, run.call.method
        others = self.namesakes(run.call)
        running = [other for other in others if self.runs(other)]
        guarding = [other for other in running if self.guards(other)]
        if others and not running:
            yield refuted(Question.GRAPH, f"no `{name}` of the project runs a network")
        elif running and len(guarding) == len(running):
            yield refuted(Question.GRAD, f"each `{name}` of the project switches grad off by itself")
        elif guarding:
            yield left_open(Question.GRAD, f"the project has several `{name}`, and some switch grad off")
        elif running and (len(running) <= _ALIKE or not self._guarded_elsewhere(name)):
            alone = len(running) == 1
            clause = f"`{name}` of the project leaves" if alone else f"all `{name}` of the project leave"
            yield proven(Question.GRAD, f"{clause} grad as it is")
        elif running:
            yield left_open(Question.GRAD, f"the project has many `{name}`, and not all are read")
        elif name in frameworks.NO_GRAD_METHODS:
            yield refuted(Question.GRAD, f"`{name}` of well-known models switches grad off by itself")
        else:
            yield left_open(Question.GRAD, f"`{base}.{name}` is not seen: it may switch grad off by itself")

    def _guarded_elsewhere(self, name: str) -> bool:
        """Whether a file of the project has both a function of that name and a word for switching grad off: of many files not
        all are read."""
        project, origin = self._file.project, self._file.filename
        return project is not None and any(
            project.files_defining(origin, name, word.encode()) for word in sorted(_SWITCHES)
        )

    def namesakes(self, call: ir.Call) -> list[ir.Function]:
        """The project's methods of a call's name that it could be of."""
        name = call.method
        if name not in self._methods:
            files = [self._file]
            if self._file.project is not None:
                others = self._file.project.files_defining(self._file.filename, name, b"")
                files += [other for other in others if other is not self._file]
            functions = (function for file in files for function in file.module.functions)
            self._methods[name] = [
                one for one in functions if one.name == name and one.cls is not None and not is_abstract(one)
            ]
        return [one for one in self._methods[name] if fits(one, call)]

    # --- functions -----------------------------------------------------------------------------------------------

    def callee(self, function: ir.Function, call: ir.Call) -> ir.Function | None:
        """The function of the project that a call runs, where it can be found for certain."""
        home: FileAnalysis = function.home
        found = called(home, function, call)
        if found is not None:
            return None if is_abstract(found) else found
        path = call.func.path
        full = qualified(home, function, path)
        if full is not None:
            value = home.imported_value(full)
            return value.ref if value is not None and isinstance(value.ref, ir.Function) else None
        if isinstance(call.func, ir.Name) and any(name.startswith("*") for name in home.module.imports):
            value = home.free_name(function, call.func.id)
            return value.ref if isinstance(value.ref, ir.Function) else None
        made = self._made(function, call)
        method = made[0].method(call.method) if made is not None else None
        return method if isinstance(method, ir.Function) else None

    @staticmethod
    def _made(function: ir.Function, call: ir.Call) -> tuple[ClassInfo, ir.Call] | None:
        """The class `Trainer` and its call, of `trainer.predict(b)` after `trainer = Trainer(…)`."""
        if not (isinstance(call.func, ir.Attr) and isinstance(call.func.base, ir.Name)):
            return None
        made = [
            statement.value
            for statement in ir.statements(function.body)
            if isinstance(statement, ir.Assign)
            and any(t.path == call.func.base.path for t in statement.targets)
        ]
        (maker,) = made if len(made) == 1 else (None,)
        if not isinstance(maker, ir.Call) or maker.func.path is None:
            return None
        info = class_made(function, maker)
        return (info, maker) if info is not None else None

    def runs(self, function: ir.Function, depth: int = _DEPTH) -> bool:
        """Whether a function of the project runs a network: what it treats as one, or a part of the module it belongs to."""
        if function not in self._runs:
            self._runs[function] = False  # called again within itself
            found = any(self._is_run(function, call, depth) for _, call in ir.calls(function.body))
            self._runs[function] = found
        return self._runs[function]

    def _is_run(self, function: ir.Function, call: ir.Call, depth: int) -> bool:
        home: FileAnalysis = function.home
        path = call.func.path
        table = call.func.base.path if isinstance(call.func, ir.Sub) else None
        if table is not None and call.args and NETWORKS.search(table):
            return True
        if path is None or not (call.args or call.keywords) or RUNS_NOT.search(call.method):
            return False
        if class_made(function, call) is not None:
            return False  # `Encoder(width)` makes one
        info = home.class_of(function)
        place = path.removesuffix(".forward").removesuffix(".__call__")
        parts = place.split(".")
        if info is not None and _is_own(function, parts[0]):
            value = home.attr_value(info, parts[1]) if len(parts) == 2 else None
            if value is not None and value.kind is Kind.MODULE:
                return info.is_module or not is_weightless(value.ref)
            if len(parts) == 1 and info.is_module:
                return True
        if home.treated_as_module(function, place):
            return True
        callee = self.callee(function, call) if depth else None
        makes = "." not in place and place[:1].isupper() and not place.isupper()
        named = place != path or ("." not in place and not makes) or _is_own(function, parts[0])
        if named and callee is None and NETWORK.search(parts[-1]):
            return True
        if callee is None:
            given = any(
                arg.path is not None and home.treated_as_module(function, arg.path) for arg in call.args
            )
            return "." not in path and given and RUNS.search(path) is not None
        return callee is not function and self.runs(callee, depth - 1)

    def guards(self, function: ir.Function, depth: int = _DEPTH) -> bool:
        """Whether a function of the project, or one that it calls, may switch grad off around what it runs."""
        if function not in self._guards:
            self._guards[function] = False
            home: FileAnalysis = function.home
            found = home.guards_itself(function) or bool(home.evidence[function].words & _SWITCHES)
            self._guards[function] = found or (
                depth > 0
                and any(
                    callee is not None and self.runs(callee) and self.guards(callee, depth - 1)
                    for _, call in ir.calls(function.body)
                    for callee in (self.callee(function, call),)
                )
            )
        return self._guards[function]


def _about(known: Known, base: str) -> Answer:
    if known is Known.TREATED:
        return proven(Question.GRAPH, f"`{base}` is treated as a network")
    if known is Known.PART:
        return proven(Question.GRAPH, f"`{base}` is a part of what is treated as a network")
    return left_open(Question.GRAPH, f"only its name says that `{base}` is a network")


def _is_own(function: ir.Function, name: str) -> bool:
    """Whether a name is the object that a method belongs to."""
    method = function.method
    return method is not None and bool(method.params) and method.params[0].name == name


def auxiliary(call: ir.Call) -> str | None:
    """`self.reward_model` of `self.reward_model(x)`, `self.reward_model.score(x)` and `get_reward(self.reward_model, x)`."""
    path = call.func.path
    if path is not None and AUXILIARY.search(path.rpartition(".")[2]) and (call.args or call.keywords):
        own = "." not in path or path.count(".") == 1
        last = path.rpartition(".")[2]
        if own and not last[:1].isupper() and not last.startswith(("get_", "compute_", "update_")):
            return path
    if isinstance(call.func, ir.Attr) and call.func.base.path is not None:
        base = call.func.base.path
        if AUXILIARY.search(base.rpartition(".")[2]) and RUNS.search(call.method):
            return base
    for arg in call.args:
        if arg.path is not None and _names_model(arg.path):
            return arg.path
    return None


def _names_model(path: str) -> bool:
    last = path.rpartition(".")[2]
    return AUXILIARY.search(last) is not None and last.endswith(
        ("model", "net", "network", "policy", "teacher")
    )
