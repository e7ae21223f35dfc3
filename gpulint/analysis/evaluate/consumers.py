"""Who uses a value, and how: a worklist over the edges that the flow has made, in the frames of the calls that it goes through.

Forwards it is the same table that the evaluator uses backwards: what an operation does to a value decides whether its result is still
that value.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

from gpulint.analysis.domain.values import PAIR, Value
from gpulint.analysis.evaluate.calling import gives_pair
from gpulint.analysis.evaluate.frames import Evaluating, Frame, given_for, outwards, parameter_for, settled
from gpulint.analysis.models.table import Row
from gpulint.analysis.project.file import Class, Function, methods_naming
from gpulint.analysis.syntax.flow import ENTRY, PLACES, Definition
from gpulint.analysis.syntax.nodes import COMPREHENSIONS, called_on, constant_index, key_of

MOST_STEPS: Final = 600  # places that one value is followed to
MOST_FOLLOWED: Final = 60_000  # the same of all values of one file
ANY: Final = "*"
PARAMETERS: Final = "#"  # the parameters of a network that is followed, not the network

_REARRANGED: Final = frozenset(
    "container named chained filtered enumerate zip elements pairs mapped argument arguments sum element".split()
)
# Of indices, keys and names of attributes: from what is used to the value that is followed.
Path = tuple[Any, ...]
# `graph`: what gradients flow through; `object`: one and the same thing, under whatever name; `storage`: what keeps its memory, or
# that of something in it.
Track = Literal["graph", "object", "storage"]
Role = Literal[
    "reads", "cuts", "backward", "called", "method", "attribute", "set", "given", "stored", "returned", "optimized", "tested",
    "deleted", "written", "dropped", "too much", "saved", "copied", "computed", "fed", "bound",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Use:
    """One use: what is done at `node`, by what name; `path` leads to the value from what is used there. `owner` is the container
    or object that it is stored in, or the definition of the name that it is `bound` to (where storages are followed)."""

    role: Role
    node: Any
    frame: Frame
    name: str = ""
    path: Path = ()
    owner: Any = None
    row: Row | None = None

    @property
    def does(self) -> str:
        """The event that the table says it is; empty where it says none."""
        return self.row.does if self.row is not None else ""


def consumers(evaluator: Evaluating, node: Any, frame: Frame, track: Track, path: Path = ()) -> list[Use]:
    """The uses of what an expression gives, in the order in which they are found."""
    worklist = _Worklist(evaluator, track)
    worklist.push(node, frame, path)
    return worklist.run()


def consumers_of_definition(
    evaluator: Evaluating, definition: Definition, frame: Frame, track: Track
) -> list[Use]:
    """The same of what a definition gives its key: a parameter, an attribute."""
    worklist = _Worklist(evaluator, track)
    worklist.definition(definition, frame, ())
    return worklist.run()


def goes_backward_by(evaluator: Evaluating, function: Function) -> bool:
    """Whether a framework goes backward through what a method gives: Lightning's `training_step`."""
    names = (one.rpartition(".")[2] for one in evaluator.program.library_bases(function.cls))
    rows = (evaluator.table.own(f"hooks.{one}", function.name) for one in names)
    return any(row is not None and row.does == "backward" for row in rows)


_Place = tuple[Any, Frame, Path]
_Stepped = tuple[list[_Place], list[Use]]


class _Worklist:
    def __init__(self, evaluator: Evaluating, track: Track) -> None:
        self.evaluator, self.track = evaluator, track
        self.found: list[Use] = []
        self.queue: list[_Place] = []
        self.seen: set[Any] = set()

    def run(self) -> list[Use]:
        """All uses, found once for a place: many rules ask of the same value."""
        memo = self.queue[0][1].memo if self.queue else {}
        key = (_Worklist, self.track, *self.queue)
        if key in memo:
            return [*memo[key]]
        found = self._followed()
        if not self.evaluator.is_running and self.evaluator.followed <= MOST_FOLLOWED:
            memo[key] = tuple(found)
        return found

    def _followed(self) -> list[Use]:
        found, queue, seen = self.found, self.queue, set(self.queue)
        for node, frame, path in queue:  # grows while it is gone through
            if len(seen) > MOST_STEPS or self.evaluator.followed > MOST_FOLLOWED:
                return [*found, Use("too much", node, frame, "", path)]
            work = partial(self.stepped, node, frame, path)
            onwards, uses = settled(self.evaluator, frame, (self.track, node, path), work)
            found += uses
            for one in onwards:
                if one not in seen:
                    seen.add(one)
                    queue.append(one)
        return found

    def stepped(self, node: Any, frame: Frame, path: Path) -> _Stepped:
        """Where a value goes on from a place, and how it is used there: whatever it is that comes along, so found once."""
        self.queue, self.found, self.seen = [], [], set()
        self.step(node, frame, path)
        self.evaluator.followed += 1 + len(self.seen)
        return self.queue, self.found

    def push(self, node: Any, frame: Frame, path: Path) -> None:
        at = (node, frame, path)
        if at not in self.seen and len(path) <= 3:
            self.seen.add(at)
            self.queue.append(at)

    def use(self, role: Role, node: Any, frame: Frame, path: Path, name: str = "", **more: Any) -> None:
        self.found.append(Use(role, node, frame, name, path, **more))

    def step(self, node: Any, frame: Frame, path: Path) -> None:
        if self.evaluator.is_dead(node, frame):
            return
        above = frame.flow.parents.get(node)
        method = _STEPS.get(above.__class__)
        if method is not None:
            method(self, node, above, frame, path)
        elif isinstance(above, COMPREHENSIONS):
            self.push(above, frame, (ANY, *path))
        elif isinstance(above, ast.stmt):
            self.use(_STATEMENTS.get(above.__class__, "tested"), node, frame, path)
        else:
            self.use("given", node, frame, path, type(above).__name__)

    # -- definitions

    def definitions(self, value: Any, frame: Frame, path: Path, kind: str) -> None:
        if kind == "loop":
            if not path and self.track == "object":
                return  # what is in it, not itself
            path = path if path[:1] == (PARAMETERS,) else path[1:]
        for one in frame.flow.given.get(value, ()):
            rest = _unpacked(path, one.path) if one.kind == kind else None
            if rest is not None:
                self.definition(one, frame, rest)

    def parameter(self, name: str, function: Function, frame: Frame, path: Path) -> None:
        """Go on with a parameter of a function, inside of it."""
        for one in function.flow.definitions.get(name, ()):
            if one.kind == "parameter":
                self.definition(one, frame, path)

    def definition(self, definition: Definition, frame: Frame, path: Path) -> None:
        """Go on with the uses of a key that a definition reaches, in closures and other methods too."""
        key, flow = definition.key, frame.flow
        if self.track != "graph":
            self.use("bound", definition.node, frame, path, key, owner=definition)
        for use in flow.uses_of(definition):
            self.push(use, frame, path)
        own, dot, name = key.partition(".")
        function = frame.function
        if dot and function.cls is not None and own == function.self_name and "." not in name:
            self.use("stored", definition.node, frame, path, key, owner=(function.cls, name))
            self.attribute(function.cls, name, path, frame)
        elif dot or "[" in key or key in flow.elsewhere:
            self.use("stored", definition.node, frame, path, key, owner=key)
            if isinstance(node := definition.node, ast.Attribute):  # of another object
                cls = self.evaluator.value_of(node.value, frame).ref
                if isinstance(cls, Class):
                    self.attribute(cls, node.attr, path, frame)
            if key in flow.elsewhere:  # a name of the module, or of a function around
                self.outer(key, frame, path)
        else:
            self.closures(key, frame, path)

    def attribute(self, cls: Class, name: str, path: Path, frame: Frame) -> None:
        """The uses of an attribute in all methods of its class and of those that derive from it; in the method that sets it only where
        the same caller calls it."""
        program = self.evaluator.program
        for method, key in methods_naming((*program.lineage(cls), *program.subclasses(cls)), name):
            frames = self.beside(frame) if method is frame.function else [self.evaluator.root(method)]
            for use in method.flow.uses.get(key, ()):
                if path or ENTRY in method.flow.reaching(use) or method.name == frame.function.name:
                    for where in frames:
                        self.push(use, where, path)
        self.from_outside(cls, name, path)

    def beside(self, frame: Frame) -> list[Frame]:
        """A frame and those of the other calls of its function in the same caller."""
        function, caller = frame.function, frame.caller
        if caller is None:
            return [frame]
        sites = (one for one in self.evaluator.callers(function) if one.frame.function is caller.function)
        others = (self.evaluator.enter(function, one.call, caller, frame.receiver) for one in sites)
        return [frame, *(one for one in others if one is not None and one is not frame)]

    def from_outside(self, cls: Class, name: str, path: Path) -> None:
        """The uses of an attribute by others: `trainer.losses`."""
        for function in (one for one in cls.file.naming(name) if one.cls is not cls):
            frame, uses = self.evaluator.root(function), function.flow.uses
            for use in (one for key in uses if key.endswith(f".{name}") for one in uses[key]):
                if self.evaluator.value_of(use.value, frame).ref is cls:
                    self.push(use, frame, path)

    def closures(self, key: str, frame: Frame, path: Path) -> None:
        function = frame.function
        inside = function.file.within(None if function.is_module else function)
        for other in inside if not function.is_module or key in function.flow.definitions else ():
            if key in other.words and key not in {one.arg for one in other.parameters}:
                for use in other.flow.uses.get(key, ()):
                    if ENTRY in other.flow.reaching(use):
                        self.push(use, self.evaluator.root(other), path)

    # -- statements

    def assign(self, node: Any, above: Any, frame: Frame, path: Path) -> None:
        self.definitions(node, frame, path, "assign")
        for store in (one for one in frame.flow.stores if one.value is node):
            if key_of(store.target) is not None:
                self.into(store.target.value, frame, (constant_index(store.target.slice), *path))
            elif (rest := _unpacked(path, store.path)) is not None:
                self.store(store.target.value, node, frame, rest)

    def augmented(self, node: Any, above: ast.AugAssign, frame: Frame, path: Path) -> None:
        if node is above.target and self.track == "object" and not path:
            self.use("written", node, frame, path)
        if node is above.value and self.track != "graph" and not path:
            self.use("computed", node, frame, path)
            return
        for one in frame.flow.given.get(above.value, ()):
            if one.kind == "augmented":
                self.use("computed", node, frame, path, one.key)
                self.definition(one, frame, path)
        target = above.target
        if isinstance(target, ast.Subscript):
            self.store(target.value, node, frame, path)

    def give(self, node: Any, above: Any, frame: Frame, path: Path) -> None:
        """A return: to the call that the frame is of, or to all of them."""
        path = (ANY, *path) if isinstance(above, (ast.Yield, ast.YieldFrom)) else path
        if frame.caller is not None:
            self.push(frame.call, frame.caller, path)
            return
        is_loss = not path or path[0] in (0, "loss", ANY)  # of what has parts: the framework keeps the others
        if self.track == "graph" and is_loss and goes_backward_by(self.evaluator, frame.function):
            self.use("backward", node, frame, path, frame.function.name)
        function = frame.function
        sites = self.evaluator.callers(function)
        for site in sites:
            self.push(site.call, site.frame, path)
        # a network that only its own class calls is there for others
        own = function.name == "forward" and all(site.frame.function.cls is function.cls for site in sites)
        if own or not sites or not all(site.certain for site in sites):
            self.use("returned", node, frame, path)

    def loop(self, node: Any, above: Any, frame: Frame, path: Path) -> None:
        if path[:1] == (PARAMETERS,):
            self.use("method", node, frame, path, "for parameters")
        elif not path and self.track == "object":
            self.use("attribute", node, frame, path, "items")
        self.definitions(node, frame, path, "loop")

    def with_item(self, node: Any, above: Any, frame: Frame, path: Path) -> None:
        self.definitions(node, frame, path, "context")

    # -- expressions

    def read(self, node: Any, above: Any, frame: Frame, path: Path) -> None:
        self.use("reads", node, frame, path, type(above).__name__)

    def through(self, node: Any, above: Any, frame: Frame, path: Path) -> None:
        self.push(above, frame, path)
        if isinstance(above, ast.NamedExpr):
            self.definitions(node, frame, path, "assign")

    def operator(self, node: Any, above: Any, frame: Frame, path: Path) -> None:
        if path and isinstance(self.evaluator.value_of(node, frame).ref, Class):
            self.use("given", above, frame, path)  # its class says what an operator does with what it holds
        joined = path[:1] == (PARAMETERS,) and self.evaluator.value_of(above, frame).kind == "parameters"
        if self.track != "graph" and (not path or path[0] == PARAMETERS) and not joined:
            self.use("computed", node, frame, path)
            return
        made = self.evaluator.value_of(above, frame).kind if isinstance(above, ast.BinOp) else "tensor"
        if made in ("text", "number"):
            self.use("reads", node, frame, path)
        else:
            self.push(above, frame, path)

    def chosen(self, node: Any, above: ast.IfExp, frame: Frame, path: Path) -> None:
        if node is above.test:
            self.use("tested", node, frame, path)
        else:
            self.push(above, frame, path)

    def display(self, node: Any, above: Any, frame: Frame, path: Path) -> None:
        if isinstance(node, ast.Starred):
            self.push(above, frame, (ANY, *path[1:]) if path else path)
        elif isinstance(above, ast.Set):
            self.push(above, frame, (ANY, *path))
        else:
            self.push(above, frame, (above.elts.index(node), *path))

    def starred(self, node: Any, above: Any, frame: Frame, path: Path) -> None:
        outer = frame.flow.parents.get(above)
        if isinstance(outer, ast.Call):
            self.given_to(above, outer, frame, path)
        else:
            self.push(above, frame, path)

    def dict_display(self, node: Any, above: ast.Dict, frame: Frame, path: Path) -> None:
        for key in (one for one, value in zip(above.keys, above.values, strict=True) if value is node):
            known = key.value if isinstance(key, ast.Constant) else ANY
            self.push(above, frame, path if key is None else (known, *path))

    def generator(self, node: Any, above: ast.comprehension, frame: Frame, path: Path) -> None:
        if node is above.iter:
            self.loop(node, above, frame, path)
        else:
            self.use("tested", node, frame, path)

    def subscript(self, node: Any, above: ast.Subscript, frame: Frame, path: Path) -> None:
        if node is above.slice:
            self.use("reads", node, frame, path)
        elif isinstance(above.ctx, ast.Store):
            if not path:  # else another item takes its place in the container
                self.use("set", above, frame, path, "item")
        elif isinstance(above.ctx, ast.Del):
            self.use("deleted", above, frame, path, "item")
        elif isinstance(above.slice, ast.Slice):
            self.push(above, frame, path)
        elif not path and self.track == "object" and not self._holds_what_it_makes(node, above, frame):
            self.use("attribute", above, frame, path, "item")
        elif path[:1] in ((), (PARAMETERS,)):
            self.push(above, frame, path)
        elif _matches(path[0], constant_index(above.slice)):
            self.push(above, frame, path[1:])

    def _holds_what_it_makes(self, node: Any, above: ast.Subscript, frame: Frame) -> bool:
        """Whether a network is what a call gives along with others, and is known by that call: `clip.load(name)[0]`."""
        kinds = (self.evaluator.value_of(node, frame).kind, self.evaluator.value_of(above, frame).kind)
        return kinds == ("tuple", "module")

    def of_lambda(self, node: Any, above: ast.Lambda, frame: Frame, path: Path) -> None:
        """What a lambda gives: to whoever is given the lambda."""
        outer = frame.flow.parents.get(above)
        if isinstance(outer, ast.Call) and outer.func is not above and node is above.body:
            self.given_to(above, outer, frame, path)
        else:
            self.use("given", above, frame, path, "Lambda")

    def keyword(self, node: Any, above: Any, frame: Frame, path: Path) -> None:
        self.given_to(node, frame.flow.parents[above], frame, path)

    def call(self, node: Any, above: ast.Call, frame: Frame, path: Path) -> None:
        if node is above.func:
            self.use("called", above, frame, path)
        else:
            self.given_to(node, above, frame, path)

    # -- methods

    def attribute_of(self, node: Any, above: ast.Attribute, frame: Frame, path: Path) -> None:
        if isinstance(above.ctx, ast.Store):
            self.use("set", above, frame, path, above.attr)
            return
        outer = frame.flow.parents.get(above)
        call = outer if isinstance(outer, ast.Call) and outer.func is above else None
        if call is not None and self.track == "object":
            self.definitions(call, frame, path, "inplace")  # what it is from then on: the same
        if path and path[0] != PARAMETERS:
            self.of_container(node, above, call, frame, path)
        elif self.track != "object":
            self.of_tensor(above, call, frame)
        else:
            self.of_object(node, above, call, frame, path)

    def of_container(self, node: Any, above: ast.Attribute, call: Any, frame: Frame, path: Path) -> None:
        name = above.attr
        is_entry = call is not None and self.evaluator.table.own("dict", name) is None
        if call is None or (is_entry and self.evaluator.value_of(node, frame).kind == "dict"):
            # an object, one of whose attributes the value is, or a pair of values and indices
            if path[0] in (name, ANY) or path[0] == PAIR.get(name):
                self.push(above, frame, path[1:])
            return
        if name in ("items", "values", "copy"):
            into = {"items": (ANY, 1), "values": (ANY,), "copy": path[:1]}
            self.push(call, frame, (*into[name], *path[1:]))
        elif name in ("get", "pop", "popleft", "setdefault"):
            index = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else None
            if name == "popleft" or _matches(path[0], index):
                self.push(call, frame, path[1:])
        elif name == "clear":
            self.use("deleted", call, frame, path, name)
        elif any(self.evaluator.table.own(kind, name) is not None for kind in ("list", "dict", "set")):
            self.use("attribute", call, frame, path, name)
        else:
            self.into_method(node, above, call, frame, path)

    def into_method(self, node: Any, above: ast.Attribute, call: Any, frame: Frame, path: Path) -> None:
        """The object itself goes into one of its methods."""
        methods = self.evaluator.methods(self.evaluator.value_of(node, frame), above.attr)
        methods = [(method, base) for method, base in methods if method.takes_self]
        if not methods:
            self.use("method", call, frame, path, above.attr)
        for method, base in methods:
            inner = self.evaluator.enter(method, call, frame, base) or self.evaluator.root(method)
            self.parameter(method.self_name, method, inner, path)

    def of_tensor(self, above: ast.Attribute, call: Any, frame: Frame) -> None:
        table = self.evaluator.table
        if call is None:
            row = table.method("tensor.attributes", above.attr)
            if row is None or row.gives == "number":
                self.use("reads" if above.attr != "grad_fn" else "attribute", above, frame, (), above.attr)
            elif row.graph == "cuts" and self.track == "graph":
                self.use("cuts", above, frame, (), above.attr, row=row)
            else:
                self.push(above, frame, ())
            return
        base = self.evaluator.value_of(above.value, frame)
        if base.kind in ("object", "module") and isinstance(base.ref, Class):
            self.into_method(above.value, above, call, frame, ())
            return
        if self.track == "storage" and self.taken_apart(above.attr, call, frame):
            return
        row = table.method("tensor", above.attr) or Row()
        if row.does == "draws" and base.kind != "tensor":  # from what is not seen: gradients may go through
            self.push(call, frame, ())
            return
        if above.attr[-1:] == "_" and row.graph == "keeps" and row.does != "copies into":
            self.definitions(call, frame, (), "inplace")  # what it is from then on has the graph too
        self.by_row(row, above.value, call, frame, (), above.attr)

    def taken_apart(self, name: str, call: Any, frame: Frame) -> bool:
        """A method of a dict of tensors, or of a network: whether what it gives has been gone on with."""
        row = self.evaluator.table.own("dict", name)
        gives = row.gives if row is not None else ""
        if gives == "pairs":
            self.push(call, frame, (ANY, 1))
        elif gives == "elements":
            self.push(call, frame, (ANY,))
        elif gives == "element" or name in ("copy", "state_dict"):
            self.push(call, frame, ())
        elif gives == "number":
            self.use("reads", call, frame, (), name)
        elif self.evaluator.table.own("module", name) is not None and name not in ("float", "half", "type"):
            self.use("method", call, frame, (), name)
        else:
            return False
        return True

    def of_object(self, node: Any, above: ast.Attribute, call: Any, frame: Frame, path: Path) -> None:
        name = above.attr
        if path[:1] == (PARAMETERS,):
            stays = call is not None and name in ("items", "values", "copy", "detach", "clone")
            if stays or name == "data":
                self.push(call or above, frame, path)
            elif name[-1:] == "_" and name != "requires_grad_":
                self.use("written", call or above, frame, path, name)
            else:
                self.use("method", call or above, frame, path, f"parameters.{name}")
            return
        if call is None:
            self.use("attribute", above, frame, path, name)
            part = self.evaluator.table.own("module.attributes", name)
            if part is not None and part.gives == "module":
                self.push(above, frame, path)
            return
        value, table = self.evaluator.value_of(node, frame), self.evaluator.table
        is_asked = value.kind == "unknown" and table.own("asked.module", name) is not None
        row = table.own("module" if is_asked else value.kind, name)
        if self.evaluator.method(value.ref, name) is not None:
            self.use("method", call, frame, path, name)
            self.into_method(node, above, call, frame, path)
            return
        self.use("method", call, frame, path, name, row=row)
        moved = ("to", "cuda", "cpu", "eval", "train", "half", "float") if value.kind == "unknown" else ()
        if name in moved or (row is not None and row.gives == "receiver"):
            self.push(call, frame, path)
        elif name in ("parameters", "named_parameters", "state_dict"):
            self.push(call, frame, (PARAMETERS, *path))
        elif row is not None and row.gives in ("elements", "pairs", "element"):
            self.use("attribute", call, frame, path, name)

    # -- arguments

    def given_to(self, node: Any, call: ast.Call, frame: Frame, path: Path) -> None:
        func = call.func
        if isinstance(func, ast.Attribute):
            base = self.evaluator.value_of(func.value, frame)
            if func.attr in ("backward", "manual_backward") and base.kind in ("unknown", "module"):
                # autograd's gives nothing
                given = isinstance(frame.flow.parents.get(call), ast.Assign)
                if not (given or self.evaluator.methods(base, func.attr)):
                    self.use("backward", call, frame, path, func.attr)
                    return
            if self.into_container(call, func, base, frame, path):
                return
            if path[:1] == (PARAMETERS,) and base.kind == "optimizer":
                self.use("optimized", call, frame, path, func.attr)
                return
            methods = self.evaluator.methods(base, func.attr)
            for method, of_class in methods:
                self.into_function(method, node, call, frame, path, of_class)
            if methods:
                return
            of_tensors = self.evaluator.table.method("tensor", func.attr) or Row()
            is_tensor = base.kind in ("tensor", "parameter") and self.track != "object"
            if is_tensor or of_tensors.does == "copies into":
                if func.attr[-1:] == "_" and self.track == "graph":
                    # what it is added to has its graph from then on
                    self.definitions(call, frame, path, "inplace")
                self.by_row(of_tensors, node, call, frame, path, func.attr)
                return
            table = self.evaluator.table
            row = (table.method if base.kind == "logger" else table.own)(base.kind, func.attr)
            if row is not None:
                self.by_row(row, node, call, frame, path, func.attr)
                return
            own = base.kind == "module" and self.evaluator.value_of(func, frame).kind != "module"
            if own and not (isinstance(base.ref, Class) and self.evaluator.fields(base.ref, func.attr)):
                self.use("fed" if self.track == "graph" else "given", call, frame, path, func.attr)
                if self.track == "graph":
                    self.push(call, frame, ())
                return
        for target in self.evaluator.value_of(func, frame).each:
            self.given_to_value(target, node, call, frame, path)

    def given_to_value(self, target: Value, node: Any, call: ast.Call, frame: Frame, path: Path) -> None:
        name = key_of(call.func) or ""
        runs = self.evaluator.method(target.ref, "__call__") if target.kind == "object" else None
        if name == "super":
            return  # it finds a method, which is called then
        if target.function is not None:
            self.into_function(target.function, node, call, frame, path, target.receiver)
        elif runs is not None:
            self.into_function(runs, node, call, frame, path, target)
        elif target.kind == "class" and isinstance(target.ref, Class):
            init = self.evaluator.method(target.ref, "__init__")
            if init is not None:
                made = self.evaluator.value_of(call, frame)
                self.into_function(init, node, call, frame, path, made)
            else:
                self.use("stored", call, frame, path, name, owner=target.ref)
                field = self.evaluator.field_for(target.ref, call, node)
                if field is not None or isinstance(node, ast.Starred):
                    self.push(call, frame, (field, *path) if field else (ANY, *path[1:]))
            if self.track == "object" and path[:1] == (PARAMETERS,):
                steps = self.evaluator.value_of(call, frame).kind == "optimizer"
                self.use("optimized" if steps else "given", call, frame, path, name)
        elif target.kind == "module":
            self.into_network(target, node, call, frame, path)
        elif (row := self.evaluator.table.function(target.full_name)) is not None:
            self.by_row(row, node, call, frame, path, target.full_name)
        else:
            self.use("given", call, frame, path, name)
            if self.track == "graph":
                self.push(call, frame, ())

    def into_network(self, target: Value, node: Any, call: ast.Call, frame: Frame, path: Path) -> None:
        method = self.evaluator.method(target.ref, "forward")
        if self.track == "graph":
            self.use("fed", call, frame, path)
        if method is not None:
            self.into_function(method, node, call, frame, path, target)
        elif self.track == "graph":
            self.push(call, frame, ())  # what a network gives depends on what it is given
        else:
            self.use("given", call, frame, path, key_of(call.func) or "")

    def into_function(
        self, function: Function, node: Any, call: ast.Call, frame: Frame, path: Path, receiver: Value | None
    ) -> None:
        """Go on inside a function of the project."""
        bound = function.takes_class or (function.takes_self and receiver is not None)
        name = parameter_for(function, call, node, bound)
        if name is None:
            self.use("given", call, frame, path, function.name)
            return
        inner = self.evaluator.enter(function, call, frame, receiver if bound else None)
        if inner is None:
            if frame.function is function or self.evaluator.root(function) is frame:
                return
            if self.track == "graph":  # what it gives is given to this call, and not to others
                self.push(call, frame, ())
                return
            inner = self.evaluator.root(function)
        star, stars = function.node.args.vararg, function.node.args.kwarg
        path = (ANY, *path) if name in {one.arg for one in (star, stars) if one is not None} else path
        self.parameter(name, function, inner, path)

    def by_row(self, row: Row, node: Any, call: ast.Call, frame: Frame, path: Path, name: str) -> None:
        """What a row of the table makes of the value."""
        does = row.does
        if does == "copies into" and (path[:1] == (PARAMETERS,) or self.track != "graph"):
            self.use("reads", call, frame, path, name, row=row)
        elif does in _EVENTS:
            self.use(_EVENTS[does], call, frame, path, name, row=row)
            if does == "differentiates":
                self.push(call, frame, (ANY,))
        elif row.gives in _REARRANGED:
            self.rearranged(row.gives, node, call, frame, path)
        elif row.reads or (row.does == "takes form" and node in call.args):
            self.use("reads", call, frame, path, name, row=row)
        elif row.gives == "module" and self.track == "graph":
            self.use("given", call, frame, path, name, row=row)  # a layer, and no value
        elif self.track == "object" and row.gives != "receiver":
            is_read = path[:1] == (PARAMETERS,) or row.gives == "number"
            self.use("reads" if is_read else "given", call, frame, path, name, row=row)
        elif row.gives == "receiver":
            self.use("method", call, frame, path, name, row=row)
            self.push(call, frame, path)
        elif self.track == "storage" and row.gives == "tensor" and not row.view:
            self.use("computed", call, frame, path, name, row=row)
        elif row.graph == "cuts" and self.track == "graph":
            self.use("cuts", call, frame, path, name, row=row)
        elif row.graph == "none":
            self.use("reads" if row.gives == "number" else "given", call, frame, path, name, row=row)
        elif gives_pair(self.evaluator, row, call, frame, "." not in name):
            self.push(call, frame, (0,))
            self.use("cuts", call, frame, path, name, row=row)
        else:
            if row.device == "host":
                self.use("method", call, frame, path, name, row=row)
            self.push(call, frame, ())

    def rearranged(self, gives: str, node: Any, call: ast.Call, frame: Frame, path: Path) -> None:
        """Through functions that give the same things in another order."""
        position = call.args.index(node) if node in call.args else 0
        if gives == "mapped":
            self.mapped(node, call, frame, path)
            return
        if gives == "argument" and call.args[:1] != [node]:
            return
        if gives == "enumerate":
            path = (ANY, 1, *path[1:])
        elif gives == "zip" and path[:1] == (PARAMETERS,):
            path = (ANY, position, *path)
        elif gives == "zip" and isinstance(node, ast.Starred):
            path = (path[1] if len(path) > 1 else ANY, ANY, *path[2:])
        elif gives == "zip":
            path = (ANY, position, *path[1:])
        elif gives in ("sum", "element"):
            path = path[1:]
        elif gives == "named":
            own = next((one.arg for one in call.keywords if one.value is node), None)
            pairs = path[:1] == (ANY,) and path[1:2] == (1,)  # `dict([(key, thing), …])`
            path = (own, *path) if own else (ANY, *path[2:]) if pairs else path
        elif gives == "arguments" and len(call.args) > 1:
            path = (position, *path)
        self.push(call, frame, path)

    def mapped(self, node: Any, call: ast.Call, frame: Frame, path: Path) -> None:
        """`map(function, things)`: each of them is given to the function, and what a lambda makes of it is given back."""
        function = call.args[0] if call.args else None
        full = self.evaluator.value_of(function, frame).full_name if function is not None else ""
        row = self.evaluator.table.function(full)
        if isinstance(function, ast.Lambda) and node in call.args:
            if node is function:
                self.push(call, frame, (ANY, *path))
            for one in _given_by(function, call.args.index(node) - 1, frame):
                self.definition(one, frame, path[1:])
        elif row is None or node is function:
            self.use("given", call, frame, path, "map")
        else:
            self.by_row(row, node, call, frame, path[1:], "map")

    # -- stores

    def into_container(
        self, call: ast.Call, func: ast.Attribute, base: Value, frame: Frame, path: Path
    ) -> bool:
        """A method that puts what it is given into a list or dict."""
        kinds = {"state": "dict" if self.track == "storage" else "", "unknown": "list", "parameters": "list"}
        kind = kinds.get(base.kind, base.kind)
        row = self.evaluator.table.own(kind, func.attr) if kind in ("list", "dict", "set") else None
        if row is None or not row.does.startswith("stores"):
            return False
        if base.kind == "unknown" and func.attr in ("add", "update", "insert"):
            return False
        inner = path[1:] if row.does == "stores elements" and path != (PARAMETERS,) else path
        self.store(func.value, call, frame, inner)
        return True

    def store(self, container: Any, at: Any, frame: Frame, path: Path) -> None:
        """Put into a container: go on with what is taken out of it."""
        value = self.evaluator.value_of(container, frame)
        name = key_of(frame.flow.place(container)) or ""
        self.use("stored", at, frame, path, name, owner=(container, value))
        self.into(container, frame, path if value.kind in ("tensor", "parameter") else (ANY, *path))

    def into(self, container: Any, frame: Frame, path: Path) -> None:
        """Go on with the uses of a container, under all its names."""
        if ("into", container, frame, path) in self.seen or len(self.seen) > MOST_STEPS:
            return  # of a function that calls itself
        self.seen.add(("into", container, frame, path))
        flow = frame.flow
        while (key := key_of(container)) is None:
            # of `d[k]` and `d.setdefault(k, [])`: `d`
            is_item = isinstance(container, ast.Subscript)
            container = container.value if is_item else called_on(container, "setdefault", "get")
            path = (ANY, *path)
            if container is None:
                return
        for one in flow.reaching(container):
            for use in flow.uses_of(one):
                if use is not container:
                    self.push(use, frame, path)
            if one.kind == "parameter":
                self.back_to_callers(one, frame, path)
            elif one.kind == "assign" and not one.path and isinstance(one.value, PLACES):
                self.into(one.value, frame, path)
            elif one is not ENTRY and isinstance(container, ast.Name):
                self.closures(key, frame, path)
        own, _, name = key.partition(".")
        if name.isidentifier() and frame.function.cls is not None and own == frame.function.self_name:
            self.attribute(frame.function.cls, name, path, frame)
        elif isinstance(container, ast.Attribute) and isinstance(
            cls := self.evaluator.value_of(container.value, frame).ref, Class
        ):
            self.attribute(cls, container.attr, path, frame)
        elif ENTRY in flow.reaching(container):
            if isinstance(container, ast.Attribute):  # what is in a part is in the whole
                self.into(container.value, frame, (container.attr, *path))
            elif isinstance(container, ast.Subscript):
                self.into(container.value, frame, (constant_index(container.slice), *path))
            else:
                self.outer(key, frame, path)

    def outer(self, key: str, frame: Frame, path: Path) -> None:
        """A container of a function around, or of the module."""
        function = frame.function.parent or frame.function.file.body
        if key in function.flow.definitions:
            root = self.evaluator.root(function)
            for use in function.flow.uses.get(key, ()):
                self.push(use, root, path)
            self.closures(key, root, path)

    def back_to_callers(self, definition: Definition, frame: Frame, path: Path) -> None:
        """A container that a caller gave: the caller has it too."""
        for call, caller in outwards(self.evaluator, frame):
            given = given_for(frame.function, definition.key, call)
            if given is not None and key_of(given) is not None:
                self.into(given, caller, path)


def _unpacked(path: Path, target: Path) -> Path | None:
    """What is left of a path where a value is unpacked; None where another part of it is taken."""
    rest = list(path)
    for index in target:
        if rest[:1] == [PARAMETERS]:
            return path  # a name beside them is no harm
        if not rest:
            return ()  # a tensor that is unpacked: each part is of it
        first = rest.pop(0)
        if isinstance(index, slice):
            rest.insert(0, ANY)
        elif first != index and isinstance(index, int) and isinstance(first, int) and index >= 0:
            return None
    return tuple(rest)


def _given_by(function: ast.Lambda, position: int, frame: Frame) -> list[Definition]:
    """The definition of what a lambda is given at a position."""
    given = function.args.args[position : position + 1] if position >= 0 else []
    return [found for one in given for found in frame.flow.definitions.get(one.arg, ()) if found.node is one]


def _matches(wanted: Any, index: Any) -> bool:
    # from the end, or of a record
    uncounted = isinstance(index, int) and (index < 0 or isinstance(wanted, str))
    return wanted in (ANY, None, index) or index is None or uncounted


# What becomes of what a call with an event is given: a step is given a closure, or a loss that it goes back through.
_EVENTS: dict[str, Role] = {
    "backward": "backward", "differentiates": "backward", "step": "backward", "optimizes": "optimized", "saves": "saved",
    "copies": "copied", "loads weights": "given", "loads into optimizer": "given",
}  # fmt: skip
_STATEMENTS: dict[type, Role] = {ast.Expr: "dropped", ast.Delete: "deleted"}
_STEPS: dict[type, Any] = {
    ast.Assign: _Worklist.assign, ast.AnnAssign: _Worklist.assign, ast.AugAssign: _Worklist.augmented, ast.Return: _Worklist.give,
    ast.Yield: _Worklist.give, ast.YieldFrom: _Worklist.give, ast.For: _Worklist.loop, ast.AsyncFor: _Worklist.loop,
    ast.withitem: _Worklist.with_item, ast.Compare: _Worklist.read, ast.FormattedValue: _Worklist.read,
    ast.Await: _Worklist.through, ast.NamedExpr: _Worklist.through, ast.BoolOp: _Worklist.through, ast.BinOp: _Worklist.operator,
    ast.UnaryOp: _Worklist.operator, ast.IfExp: _Worklist.chosen, ast.Tuple: _Worklist.display, ast.List: _Worklist.display,
    ast.Set: _Worklist.display, ast.Starred: _Worklist.starred, ast.Dict: _Worklist.dict_display, ast.comprehension: _Worklist.generator,
    ast.Subscript: _Worklist.subscript, ast.keyword: _Worklist.keyword, ast.Call: _Worklist.call, ast.Lambda: _Worklist.of_lambda,
    ast.Attribute: _Worklist.attribute_of,
}  # fmt: skip
