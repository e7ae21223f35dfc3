"""Whether a function is only ever reached where grad is off: through all files of its project, from caller to caller."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gpulint.analysis.code import ir
from gpulint.analysis.code.outside import FileCalls, OutsideCall, names_bound
from gpulint.analysis.file.sources import Sources
from gpulint.analysis.torch import frameworks
from gpulint.analysis.torch.backward import runs_backward
from gpulint.analysis.values.arguments import is_static

if TYPE_CHECKING:
    from gpulint.analysis.file.surroundings import Surroundings

_DEPTH = 4  # callers of callers of callers
_MOST = 40  # functions asked about in one question, and callers of one
# Methods that run when the object itself is called.
_OF_INSTANCES = frozenset({"forward", "__call__"})


class Reach(Enum):
    NEVER = auto()  # nobody is seen to call it
    GUARDED = auto()
    MIXED = (
        auto()
    )  # some callers switch grad off; the others may well call another class's method of that name
    OPEN = auto()


@dataclass(frozen=True, slots=True)
class _Caller:
    path: str
    raw: bytes
    call: OutsideCall


@dataclass
class Reaching:
    """One question, asked of the files of one project."""

    project: Surroundings[Any]
    root: str
    _seen: set[tuple[str, str]] = field(default_factory=set)

    def of(self, origin: str, functions: tuple[ir.Function, ...]) -> Reach:
        """How calls in the project reach the functions: guarded only where all do. Of several, a private one may be dead
        code."""
        reached = Reach.NEVER
        for function in functions:
            self._seen.clear()
            found = self._reach(os.path.abspath(origin), function, _DEPTH, True)
            if found is Reach.OPEN or (found is Reach.NEVER and not function.name.startswith("_")):
                return Reach.OPEN
            reached = reached if found is Reach.NEVER else _both(reached, found)
        return reached

    def _reach(self, path: str, function: ir.Function, depth: int, torch: bool) -> Reach:
        # A caller without torch of something with torch is likely to call another function of that name.
        key = (path, function.qualname)
        if key in self._seen or len(self._seen) > _MOST:
            return Reach.NEVER if key in self._seen else Reach.OPEN
        self._seen.add(key)
        found = Reach.NEVER
        # Where nothing else calls it, those do that hand on to it: a group of evaluators, to each of them.
        callers = list(self._callers(path, function)) or list(self._namesakes(function))
        if len(callers) > _MOST:
            return Reach.OPEN
        chosen = {_chosen(caller) for caller in callers if caller.call.guarded}
        for caller in callers:
            # Of two calls in one function, one of them guarded, the condition between them is about grad.
            if (
                caller.call.guarded
                or _chosen(caller) in chosen
                or self._by_framework(caller.call.caller)
                or self._by_program(caller)
            ):
                found = _both(found, Reach.GUARDED)
                continue
            if caller.path == path and depth == _DEPTH:
                continue  # what the file's own analysis follows, it has followed
            onward = self._onward(caller, function, depth)
            if onward is Reach.OPEN and b"torch" not in caller.raw and torch:
                continue
            if onward is Reach.OPEN and not self._may_be_others(function, caller.call):
                return Reach.OPEN
            found = _both(found, onward)
        if found in (Reach.OPEN, Reach.MIXED):
            guarded = any(caller.call.guarded for caller in (*callers, *self._namesakes(function)))
            return Reach.MIXED if guarded else Reach.OPEN
        return found

    def _may_be_others(self, function: ir.Function, call: OutsideCall) -> bool:
        """Whether a call that fits a method, in code that trains, may be that of another class: the object is not seen to be
        of this one."""
        if function.cls is None or call.on_self_of is not None or function.name in _OF_INSTANCES:
            return False
        if not any(runs_backward(inner.method) for _, inner in ir.calls(call.caller.body)):
            return False
        owner = call.call.func.base.path if isinstance(call.call.func, ir.Attr) else None
        last = (owner or "").rpartition(".")[2]
        own = {function.cls.name} | self.project.bases(function.cls.name)
        return any(
            method.cls is not None and method.cls.name not in own and fits(method, call.call)
            for _, _, calls in self._files((f"def {function.name}(".encode(),))
            for method in calls.methods.get(function.name, ())
        ) and not any(
            last in calls.made.get(function.cls.name, ())
            for _, _, calls in self._files((f"{function.cls.name}(".encode(),))
        )

    def _namesakes(self, function: ir.Function) -> Iterator[_Caller]:
        """The calls in methods of the same name, which hand on to one of several classes."""
        if function.cls is None:
            return
        for path, raw, calls in self._files((f"{function.name}(".encode(),)):
            for call in calls.calls.get(function.name, ()):
                if call.namesake and call.on_self_of is None and fits(function, call.call):
                    yield _Caller(path, raw, call)

    def _onward(self, caller: _Caller, called: ir.Function, depth: int) -> Reach:
        function = caller.call.caller
        if depth == 0 or function.name == "<module>":
            return Reach.OPEN
        found = self._reach(caller.path, function, depth - 1, b"torch" in caller.raw)
        # What nobody calls and does nothing but hand on is no way in of its own.
        return Reach.OPEN if found is Reach.NEVER and not _hands_on(caller.call, called) else found

    def _by_framework(self, function: ir.Function) -> bool:
        """Whether a framework runs a method without grad."""
        if function.cls is None:
            return False
        bases = self.project.bases(function.cls.name)
        if function.name in frameworks.LIGHTNING_NO_GRAD:
            return not bases.isdisjoint({"LightningModule", "Callback"})
        return function.name in frameworks.HF_TRAINER_NO_GRAD and any(b.endswith("Trainer") for b in bases)

    def _by_program(self, caller: _Caller) -> bool:
        """Whether the file of a call is a program that begins with grad switched off, of which no other file uses the caller."""
        function = caller.call.caller
        if not self.project.calls_in(caller.path, caller.raw).off_in_program or function.name == "<module>":
            return False
        name = function.cls.name if function.cls is not None else function.name
        return not any(
            path != caller.path and may_import(raw, caller.path, name)
            for path, raw, _ in self._files((name.encode(),))
        )

    def calls_of(self, path: str, function: ir.Function) -> Iterator[ir.Call]:
        """The calls that may run a function, or make an object by it where it is a constructor."""
        if function.cls is None or function.name != "__init__":
            yield from (caller.call.call for caller in self._callers(path, function))
            if function.name not in _OF_INSTANCES:  # which an object of another class has as well
                yield from (caller.call.call for caller in self._namesakes(function))
            return
        name = function.cls.name
        for other, raw, calls in self._files((f"{name}(".encode(),)):
            if other == path or may_import(raw, path, name):
                yield from (one.call for one in calls.calls.get(name, ()) if fits(function, one.call))

    def follows_objects(self, path: str, cls: str) -> bool:
        """Whether all objects of a class at the top of a file go by names that are seen wherever they go: each is bound where it
        is made, none is returned, and they are handed to functions of the project alone."""
        names = set[str]()
        for other, raw, calls in self._files((cls.encode(),)):
            said = self.project.mentions(other, raw)
            if cls in said.names | said.attributes | said.texts | said.renamed:
                return False
            if other != path and (
                not may_import(raw, path, cls) or self._sources.is_another(other, raw, path, cls)
            ):
                continue
            made = [names_bound(call.caller, call.call) for call in calls.calls.get(cls, ())]
            if not all(made):
                return False
            names = names.union(*made)
        handed = {
            callee
            for _, _, calls in self._files(tuple(name.encode() for name in names))
            for name in names
            for callee, _ in calls.handed.get(name, ())
        }
        return bool(names) and all(
            any(True for _ in self._files((f"def {callee}(".encode(),))) for callee in handed
        )

    # --- the calls -----------------------------------------------------------------------------------------------

    def _callers(self, path: str, function: ir.Function) -> Iterator[_Caller]:
        """The calls that can be the function's, tests left out."""
        if function.cls is not None and function.name in _OF_INSTANCES:
            yield from self._of_instances(function, function.cls.name)
        for other, raw, calls in self._files((f"{function.name}(".encode(),)):
            if function.cls is not None or other == path or may_import(raw, path, function.name):
                for call in calls.calls.get(function.name, ()):
                    handed_on = call.namesake and function.cls is not None
                    apart = other != path and _is_of_namesake(function, call, calls)
                    caller = _Caller(other, raw, call)
                    if handed_on or apart or not self._may_be(function, call):
                        continue
                    if not self._is_of_another(path, function, caller):
                        yield caller

    def meant_in(self, path: str, function: ir.Function, other: str, raw: bytes) -> list[OutsideCall]:
        """The calls in a file that may run a function, for all that can be told of what they give and of what their object is:
        more than who asks for guards goes by."""
        calls = self.project.calls_in(other, raw)
        return [
            call
            for call in calls.calls.get(function.name, ())
            if (fits(function, call.call) or self._names_class(function, call.call))
            and not self._is_of_another(path, function, _Caller(other, raw, call))
            and not self._is_on_another(path, function, _Caller(other, raw, call))
        ]

    def _names_class(self, function: ir.Function, call: ir.Call) -> bool:
        """`Trainer.validate(self, loader)`, which gives the object as well."""
        owner = call.func.base.path if isinstance(call.func, ir.Attr) else None
        name = (owner or "").rpartition(".")[2]
        return function.cls is not None and function.cls.name in self.project.bases(name)

    def _is_on_another(self, path: str, function: ir.Function, caller: _Caller) -> bool:
        """Whether a call on the object itself runs the method of another class: of one of the same name in another file, or of
        one that has nothing to do with the function's, and has that method."""
        own = caller.call.on_self_of
        if function.cls is None or own is None:
            return False
        if own == function.cls.name:
            calls = self.project.calls_in(caller.path, caller.raw)
            return caller.path != path and _is_of_namesake(function, caller.call, calls)
        mixed = any({own, function.cls.name} <= self.project.bases(one) for one in self.project.derived(own))
        return not mixed and not self.project.related(function, own) and self._has_method(own, function.name)

    def _may_be(self, function: ir.Function, call: OutsideCall) -> bool:
        if function.cls is None:
            return fits(function, call.call)
        if call.on_self_of is not None:
            # An object that is called runs its `forward`: who calls the object counts.
            inner = call.caller.name == "__call__" and function.name == "forward"
            return not inner and self.project.related(function, call.on_self_of) and fits(function, call.call)
        return function.name not in _OF_INSTANCES and fits(function, call.call)

    def _is_of_another(self, path: str, function: ir.Function, caller: _Caller) -> bool:
        """Whether the object of a call is made, as far as its file shows, of another class of the project with a method of
        that name of its own, be that class of the same name."""
        call = caller.call
        func = call.call.func
        if function.cls is None or call.on_self_of is not None or not isinstance(func, ir.Attr):
            return False
        name = (func.base.path or "").rpartition(".")[2]
        calls = self.project.calls_in(caller.path, caller.raw)
        made = [maker for maker, names in calls.made.items() if name in names]
        handed = any(param.name == func.base.path for param in call.caller.params)
        return bool(made) and all(
            not handed and self._sources.is_another(caller.path, caller.raw, path, maker)
            if maker == function.cls.name
            else not self.project.related(function, maker) and self._has_method(maker, function.name)
            for maker in made
        )

    @cached_property
    def _sources(self) -> Sources:
        return Sources(self.project, self.root)

    def _has_method(self, cls: str, name: str) -> bool:
        family = self.project.bases(cls)
        return any(
            method.cls is not None and method.cls.name in family
            for _, _, calls in self._files((f"def {name}(".encode(),))
            for method in calls.methods.get(name, ())
        )

    def _of_instances(self, function: ir.Function, cls: str) -> Iterator[_Caller]:
        """`self.net(x)` and `net.forward(x)`, by the names that instances of the class go by: where they are made, and
        where they may come under the same names."""
        classes = {cls} | self.project.derived(cls)
        here: dict[str, set[str]] = {}
        handed: set[str] = set()
        given: set[tuple[str, int | str]] = set()
        for path, _, calls in self._files(tuple(f"{name}(".encode() for name in classes)):
            names = {name for made in classes for name in calls.made.get(made, ())}
            for _ in range(2):
                names |= {new for name in names for new in calls.renamed.get(name, ())}
            here[path] = names
            handed |= names & calls.handed.keys()
            given |= {place for name in names for place in calls.handed.get(name, ())}
        known = set().union(*here.values())
        for path, raw, calls in self._files(tuple(name.encode() for name in known)):
            for name in here.get(path, handed):
                for call in calls.calls.get(name, ()):
                    if fits(function, call.call):
                        yield _Caller(path, raw, call)
            for call in calls.calls.get(function.name, ()):
                owner = call.call.func.base.path if isinstance(call.call.func, ir.Attr) else None
                if owner is not None and owner.rpartition(".")[2] in here.get(path, handed):
                    yield _Caller(path, raw, call)
        yield from self._of_parameters(function, given)
        for path, raw, calls in self._files((b"self(",)):
            for call in calls.calls.get("self", ()):
                if call.on_self_of is not None and self.project.related(function, call.on_self_of):
                    yield _Caller(path, raw, call)

    def _of_parameters(self, function: ir.Function, given: set[tuple[str, int | str]]) -> Iterator[_Caller]:
        """`model(x)` of `def evaluate(model, loader)`, to which an object is handed, whatever its name is there."""
        for callee in sorted({name for name, _ in given}):
            places = {place for name, place in given if name == callee}
            for path, raw, calls in self._files((f"def {callee}(".encode(),)):
                for name, found in calls.calls.items():
                    yield from (
                        _Caller(path, raw, call)
                        for call in found
                        if call.caller.name == callee and isinstance(call.call.func, ir.Name)
                        if _is_given(call.caller, name, places) and fits(function, call.call)
                    )

    def _files(self, words: tuple[bytes, ...]) -> Iterator[tuple[str, bytes, FileCalls]]:
        for path, raw in self.project.neighbours(self.root):
            if any(word in raw for word in words) and not self.project.is_test(path, raw, self.root):
                yield path, raw, self.project.calls_in(path, raw)


def _is_of_namesake(function: ir.Function, call: OutsideCall, calls: FileCalls) -> bool:
    """Whether a call in another file, on the object itself, runs the method of a class there that has the same name."""
    own = function.cls.name if function.cls is not None else None
    return call.on_self_of == own is not None and any(
        method.cls is not None and method.cls.name == own for method in calls.methods.get(function.name, ())
    )


def _is_given(function: ir.Function, name: str, places: set[int | str]) -> bool:
    """Whether a name is a parameter of a function, and is given at one of the places: by position or by itself."""
    first = int(function.cls is not None and not is_static(function))
    names = [param.name for param in function.params[first:]]
    return name in names and (name in places or names.index(name) in places)


def _both(one: Reach, other: Reach) -> Reach:
    """Of two ways in together; who is seen to call nothing counts for nothing."""
    if Reach.NEVER in (one, other):
        return other if one is Reach.NEVER else one
    return one if one is other else Reach.MIXED


def _chosen(caller: _Caller) -> tuple[int, str | None]:
    return id(caller.call.caller), caller.call.call.func.path


def _hands_on(call: OutsideCall, called: ir.Function) -> bool:
    """Whether the caller is `return self._act(x)`, a method of the same object, and nothing else."""
    body = [s for s in call.caller.body if not (isinstance(s, ir.ExprStmt) and isinstance(s.value, ir.Const))]
    (only,) = body if len(body) == 1 else (None,)
    own = call.on_self_of is not None and call.call.method == called.name
    return own and isinstance(only, ir.Return) and only.value is call.call


def fits(function: ir.Function, call: ir.Call) -> bool:
    """Whether a call can be the function's, by how many arguments it gives and by their names."""
    if any(isinstance(arg, ir.Starred) for arg in call.args):
        return True
    params = function.params[1:] if function.cls is not None and not is_static(function) else function.params
    normal = [param for param in params if param.kind == "normal"]
    kinds = {param.kind for param in params}
    if len(call.args) > len(normal) and "star" not in kinds:
        return False
    given = {name for name, _ in call.keywords}
    if "doublestar" not in kinds and not given - {None} <= {param.name for param in params}:
        return False
    return None in given or all(
        param.default is not None or param.name in given for param in normal[len(call.args) :]
    )


def may_import(raw: bytes, module: str, name: str) -> bool:
    """Whether a file's text names the module, or the function among its imports: otherwise another one is called."""
    stem = os.path.splitext(os.path.basename(module))[0]
    if stem == "__init__":
        stem = os.path.basename(os.path.dirname(module))
    if re.search(rb"\b%s\b" % re.escape(os.fsencode(stem)), raw):
        return True
    package = os.path.basename(os.path.dirname(module))
    through = rb"^[ \t]*(?:import|from)[ \t][^\n]*\b%s\b" % re.escape(os.fsencode(package))
    if b"." + name.encode() in raw and package and re.search(through, raw, re.MULTILINE) is not None:
        return True  # `import networks`, then `networks.Net`
    imports = rb"^[ \t]*from[ \t]+\S+[ \t]+import\b(?:[ \t]*\([^)]*\b%s\b|[^(\n]*(?:\b%s\b|\*))"
    return re.search(imports % (name.encode(), name.encode()), raw, re.MULTILINE) is not None
