"""Is there a way to a statement as the program calls its function: branches that no call chooses, and names that nothing
binds, which raise before it is reached.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.code.following import conditions, is_switched_off
from gpulint.analysis.file.reaching import fits
from gpulint.analysis.questions.reached.devices import Devices
from gpulint.analysis.questions.reached.outsiders import is_for_others, makes_by_itself, may_be_started
from gpulint.analysis.questions.reached.unbound import Unbound
from gpulint.analysis.values.arguments import bind_sources
from gpulint.analysis.values.constants import NO_TEXT, Constant, truth
from gpulint.answers import Answer, Question, left_open, refuted

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_DEPTH = 2  # callers of callers
_OF_MODULES = frozenset({"training"})  # what `train()` and `eval()` set
_BY_TEXT = re.compile(rb"\b(?:getattr|methodcaller|globals|import_module)\(")


class Ways:
    """The ways to the statements of one file."""

    def __init__(self, file: FileAnalysis) -> None:
        self._file = file
        self._unbound = Unbound(file)
        self._devices = Devices(file)
        self._given: dict[tuple[ir.Function, str], tuple[Constant] | None] = {}

    def against(self, function: ir.Function, statement: ir.Stmt) -> Iterator[Answer]:
        """What says that nobody gets to a statement, or leaves it open."""
        if (name := self._unbound.before(function, statement)) is not None:
            yield refuted(Question.REACHED, f"nothing binds `{name}`, and what uses it raises")
        elif (clause := self._unbound.halts(function, statement)) is not None or (
            clause := self._stopped(function, statement, _DEPTH)
            or self._unchosen(function, statement, _DEPTH)
        ) is not None:
            yield left_open(Question.REACHED, clause)
        if is_switched_off(function.body, statement):
            yield refuted(Question.REACHED, "somebody has switched it off by hand")
        elif (clause := self._shut(function, statement, _DEPTH)) is not None:
            answer = left_open if is_for_others(self._file) else refuted
            yield answer(Question.REACHED, clause)
        elif (name := self._switch(function, statement)) is not None:
            clause = f"`{name}` is {self._switches[name]} in the file: somebody has to set it otherwise"
            yield left_open(Question.REACHED, clause)

    def _switch(self, function: ir.Function, statement: ir.Stmt) -> str | None:
        """A switch at the top of the file that is off for the statement."""
        local = self._file.evidence[function].assigned | {param.name for param in function.params}
        for test, holds in conditions(function.body, statement):
            paths = {part.path for part in ir.walk(test)} & self._switches.keys()
            if function is not self._file.module.body:
                paths -= local
            known = {path: self._switches[path] for path in paths if path is not None}
            if known and truth(test, known) is (not holds):
                return min(known)
        return None

    @cached_property
    def _switches(self) -> dict[str, bool]:
        """The names that the body of the file sets to True or False, once, and that nothing in it sets anew."""
        body = self._file.module.body
        bound = [target.path for one in ir.statements(body.body) for target in targets(one)]
        elsewhere = {
            target.path
            for function in self._file.module.functions
            if function is not body
            for one in ir.statements(function.body)
            for target in targets(one)
        }
        found: dict[str, bool] = {}
        for one in body.body:
            value = one.value if isinstance(one, ir.Assign) else None
            if isinstance(value, ir.Const) and isinstance(value.value, bool):
                names = (target.path for target in targets(one))
                found |= {name: value.value for name in names if name is not None and bound.count(name) == 1}
        return {name: value for name, value in found.items() if name not in elsewhere and "." not in name}

    def _shut(self, function: ir.Function, statement: ir.Stmt, depth: int) -> str | None:
        """Why the statement never runs: what is known of the program when it gets there decides a test on the way against it.
        None where one may lead to it."""
        for test, holds in conditions(function.body, statement):
            paths = {part.path for part in ir.walk(test) if part.path is not None}
            known = {path: found for path in paths for found in self._known(function, path, test)}
            if known and truth(test, {path: value for path, (_, value) in known.items()}) is (not holds):
                clause, _ = known[min(known)]
                return clause
        return self._for_callers(function, depth - 1, self._shut) if depth else None

    def _stopped(self, function: ir.Function, statement: ir.Stmt, depth: int) -> str | None:
        """Why the function, or each that calls it, raises before it gets to a statement."""
        clause = self._unbound.stops(function, statement)
        return clause or (self._for_callers(function, depth - 1, self._stopped) if depth else None)

    def _unchosen(self, function: ir.Function, statement: ir.Stmt, depth: int) -> str | None:
        """Why the function, or each that calls it, never runs a statement: it does so for a text of a setting, `args.kind == "sum"`,
        and wherever the program sets that, it is to another one."""
        for test, holds in conditions(function.body, statement):
            if holds and isinstance(test, ir.Op) and test.op == "==" and len(test.operands) == 2:
                place, text = test.operands
                if isinstance(text, ir.Const) and isinstance(text.value, str) and isinstance(place, ir.Attr):
                    if self._is_set_to_others(place.attr, text.value):
                        return f"wherever the program sets `{place.path or place.attr}`, it is not to {text.value!r}"
        return self._for_callers(function, depth - 1, self._unchosen) if depth else None

    def _is_set_to_others(self, attr: str, text: str) -> bool:
        """Whether a program sets an attribute, each time to a text that is written there and is not this one, and nothing else may
        set it: no option of a command line, no keyword, no class that has it, and nobody by its name."""
        file, project = self._file, self._file.project
        if project is None or not project.is_bounded(file.filename):
            return False
        word, other = re.escape(attr.encode()), re.escape(text.encode())
        option = word.replace(b"_", b"[-_]")
        sets = re.compile(rb"\.%s[ \t]*=[ \t]*[\"']" % word)
        may_be = re.compile(
            rb"\.%s[ \t]*(?:=(?!=)(?![ \t]*([\"'])(?!%s\1)[^\"'\n]*\1[ \t\r]*(?:#|\n|$))|[-+|]=|:)"
            rb"|^[ \t\w.,]*\.%s[ \t]*,[^\n=()]*=(?!=)"
            rb"|(?<![.\w])%s[ \t]*[=:](?!=)|[\"'](?:--?)?%s[\"'](?![ \t]*:)|\bsetattr\(|__dict__|\bvars\("
            % (word, other, word, word, option),
            re.M,
        )
        return project.contains(file.filename, sets) and not project.contains(file.filename, may_be)

    def _for_callers(
        self, function: ir.Function, depth: int, asked: Callable[[ir.Function, ir.Stmt, int], str | None]
    ) -> str | None:
        """What is asked of a statement, asked of each that calls a function which only its file calls: the answer where all have
        one."""
        file, name = self._file, function.name
        if file.project is None or self._is_free(function):
            return None
        sites = [
            (caller, statement) for caller, statement, call in file.calls_named(name) if fits(function, call)
        ]
        if len(file.project.calls_of(file.filename, function)) > len(sites):
            return None
        found = [asked(caller, statement, depth) for caller, statement in sites if caller is not function]
        return found[0] if found and all(found) else None

    # --- what is known of a place -------------------------------------------------------------------------------

    def _known(self, function: ir.Function, path: str, test: ir.Expr) -> Iterator[tuple[str, Constant]]:
        """The one constant that a place has wherever a test of the function asks for it, with what says so: a parameter that all
        calls give it, an attribute that is made of one or set to it once, a device, which equals no text."""
        if self._devices.holds(function, path, test):
            yield f"`{path}` is a torch.device, which equals no text", NO_TEXT
        elif any(param.name == path for param in function.params):
            if path not in self._file.evidence[function].assigned:
                yield from self._said_given(function, path)
        elif (stored := self._stored(function, path)) is not None:
            init, value = stored
            if isinstance(value, ir.Name):
                yield from self._said_given(init, value.id)
            elif isinstance(value, ir.Const) and self._stays(init, path.rpartition(".")[2]):
                if isinstance(value.value, (bool, str, type(None))):
                    yield f"nothing sets `{path}` to anything but {value.value!r}", value.value

    def _said_given(self, function: ir.Function, name: str) -> Iterator[tuple[str, Constant]]:
        by = function.cls.name if function.name == "__init__" and function.cls is not None else function.name
        for value in self._given_by_all(function, name) or ():
            yield f"no call of `{by}` gives it a `{name}` with which this runs", value

    def _stored(self, function: ir.Function, path: str) -> tuple[ir.Function, ir.Expr] | None:
        """The constructor and what it stores as `self.attr`, where nothing else is ever stored there."""
        own = function.params[0].name if function.cls is not None and function.params else ""
        head, _, attr = path.partition(".")
        init = function.cls.methods.get("__init__") if function.cls is not None else None
        project = self._file.project
        if not own or head != own or not attr or "." in attr or init is None or project is None:
            return None
        stored = [
            (method, statement)
            for method in self._file.module.functions
            for statement in ir.statements(method.body)
            for target in targets(statement)
            if isinstance(target, ir.Attr) and target.attr == attr
        ]
        if len(stored) != 1 or stored[0][0] is not init:
            return None
        statement = stored[0][1]
        value = statement.value if isinstance(statement, ir.Assign) else None
        if value is None or statement not in init.body:
            return None
        elsewhere = re.compile(rb"(?<!self)\.%s[ \t]*=(?!=)" % re.escape(attr.encode()))
        if project.contains(self._file.filename, elsewhere):
            return None
        return init, value

    def _stays(self, init: ir.Function, attr: str) -> bool:
        """Whether an attribute that a constructor sets to a constant keeps it: neither a class above or below, of the project or
        not, nor anybody by its name sets it anew, and no other file has it in a tuple or counts on from it."""
        project, info = self._file.project, self._file.class_of(init)
        if project is None or info is None or not project.is_bounded(self._file.filename):
            return False
        if project.derived(info.cls.name) or makes_by_itself(info) or attr in _OF_MODULES:
            return False
        above = (method for one in info.lineage()[1:] for method in one.cls.methods.values())
        stored = (target for method in above for one in ir.statements(method.body) for target in targets(one))
        if any(isinstance(target, ir.Attr) and target.attr == attr for target in stored):
            return False
        word = re.escape(attr.encode())
        by_name = re.compile(
            rb"[\"']%s[\"']|\bsetattr\((?![^,\n]*,[ \t]*[\"'])|__dict__|\bvars\("
            rb"|\.%s\b[ \t]*(?:[-+*/|&^]=|:[^\n=]*=|,[^\n=()]*=(?!=))" % (word, word)
        )
        return not project.contains(self._file.filename, by_name)

    def _given_by_all(self, function: ir.Function, name: str) -> tuple[Constant] | None:
        key = (function, name)
        if key not in self._given:
            self._given[key] = self._find_given(function, name)
        return self._given[key]

    def _find_given(self, function: ir.Function, name: str) -> tuple[Constant] | None:
        """The one constant that every call of the program gives a parameter, or leaves it at."""
        project = self._file.project
        param = next((param for param in function.params if param.name == name), None)
        if project is None or param is None or self._is_free(function):
            return None
        values: set[Constant] = set()
        calls = project.calls_of(self._file.filename, function)
        for call in calls or ():
            several = any(isinstance(arg, ir.Starred) for arg in call.args)
            if several or any(key is None for key, _ in call.keywords):
                return None
            given = bind_sources(function, call, function.cls is not None).get(name, param.default)
            if not isinstance(given, ir.Const) or not isinstance(given.value, (bool, str, type(None))):
                return None
            values.add(given.value)
        return (values.pop(),) if len(values) == 1 else None

    def _is_free(self, function: ir.Function) -> bool:
        """Whether others than calls by its name may run a function, with what they like."""
        file, project = self._file, self._file.project
        name = function.name
        if (
            project is None
            or not project.is_bounded(file.filename)
            or function.parent is not file.module.body
        ):
            return True
        if name == "__init__" and function.cls is not None:
            name = function.cls.name
            outside = bool(project.derived(name)) or bool(function.cls.decorators)
        elif name == "forward" and function.cls is not None:
            outside = self._has_objects_unseen(function.cls)
        else:
            outside = may_be_started(file, function) or project.uses_as_value(file.filename, function)
        spelled = name != "forward" and any(name in evidence.strings for evidence in file.evidence.values())
        return outside or (spelled and project.contains(file.filename, _BY_TEXT))

    def _has_objects_unseen(self, cls: ir.Class) -> bool:
        """Whether something out of sight may call a network of a class: one below it, or what is handed such a network."""
        file, project = self._file, self._file.project
        info = file.owners.get(cls)
        if info is None or project is None or makes_by_itself(info) or project.derived(cls.name):
            return True
        return not project.follows_objects(file.filename, cls.name)
