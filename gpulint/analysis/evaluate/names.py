"""What names, parameters and attributes stand for."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from gpulint.analysis.domain.values import (
    BOTTOM,
    NUMBER,
    TEXT,
    UNKNOWN,
    Assumption,
    Graph,
    Value,
    join,
    join_ways,
)
from gpulint.analysis.evaluate.frames import Evaluating, Frame, bind, outwards
from gpulint.analysis.evaluate.narrowing import is_no_tensor, without_graph
from gpulint.analysis.models.table import table
from gpulint.analysis.project.file import Class, File, Function, methods_naming
from gpulint.analysis.project.program import Bound
from gpulint.analysis.syntax.flow import ENTRY, Definition, Flow
from gpulint.analysis.syntax.nodes import arguments, called_on, default_of, dotted, key_of, last_name
from gpulint.analysis.syntax.remembering import remembered, remembering

MODULE_BASES = frozenset("Module LightningModule PreTrainedModel ModelMixin GenerationMixin".split())
_AS_GIVEN = frozenset({"parameter", "assign", "import", "function", "class", "entry"})
CALLERS_ASKED = 6
MOST_MEMBERS = 8  # of a module, where it is not seen which
_CONTAINERS: dict[str, Any] = dict.fromkeys(("list", "List", "Sequence", "Iterable"), "list")
_CONTAINERS |= {"dict": "dict", "Dict": "dict", "set": "set"}
_PLAIN = {"int": NUMBER, "float": NUMBER, "bool": NUMBER, "str": TEXT}
_TYPES = frozenset("module optimizer loader scaler scheduler accelerator".split())
_SAME = frozenset({"to", "cuda", "cpu"})  # what gives a network back
_IN_PLACE = _SAME | {"half", "train"}
_BACKWARD = ("backward", "manual_backward")
Trains = Callable[[ast.Call], bool]  # whether what a call runs has weights of its own


class Names:
    """Looks names up for an evaluator."""

    def __init__(self, evaluator: Evaluating) -> None:
        self._evaluator = evaluator
        self.answers: dict[Any, Any] = {}

    # -- names

    def first_use(self, node: ast.Name, flow: Flow) -> ast.Name:
        """The first use of a name that stands for the same as this one, whatever the frame: for one definition, given as it is."""
        firsts = flow.firsts
        found = firsts.get(node)
        if found is None:
            reaching = flow.reaching(node)
            given = len(reaching) == 1 and reaching[0].kind in _AS_GIVEN and not reaching[0].path
            is_same = given and not is_no_tensor(node, reaching[0], flow)
            found = firsts[node] = firsts.setdefault((node.id, reaching), node) if is_same else node
        return found

    def name(self, node: ast.Name, frame: Frame) -> Value:
        """The value of a name where it is read."""
        flow = frame.function.flow
        reaching = flow.reaching(node)
        if len(reaching) > 1:  # not what stands on a way that is known not to be gone
            gone = tuple(one for one in reaching if one is ENTRY or not self._is_dead(one, frame))
            reaching = gone or reaching
        bound = {
            one: without_graph(value) if is_no_tensor(node, one, flow) else value
            for one in reaching
            if one is not ENTRY and one.kind != "delete"
            for value in (self._evaluator.definition(one, frame),)
        }
        values = [*bound.values()]
        is_bound = any(one.kind not in ("entry", "delete", "inplace") for one in reaching)
        if ENTRY in reaching and (not is_bound or node.id in flow.elsewhere):
            values.append(self.outer(node.id, frame))
        last = max(bound, key=lambda one: getattr(one.node, "lineno", 0), default=None)
        found = join_ways(values, bound[last] if last is not None else BOTTOM) if values else UNKNOWN
        if found.kind == "tensor" and not found.graph:
            found = self._filled(found, node.id, frame)
        seen = found.kind not in ("unknown", "loaded") or bool(found.graph)
        seen = seen or any(_makes_its_like(flow, one) for one in bound)
        role = self.role(node.id, frame.function) if not seen else None  # what it is used as
        if role is not None and (found.kind == "unknown" or (role.kind == "module" and not role.assumptions)):
            return role.but(origins=found.origins, device=found.device)
        return self._shown(found, node.id, frame.function)

    def _shown(self, found: Value, key: str, function: Function) -> Value:
        """A value without what is only guessed of it, where its uses in a function show that: `model.eval()`."""
        own = self.role(key, function) if found.assumptions else None
        shown = own is not None and own.kind == found.kind and not own.assumptions
        return found.but(assumptions=()) if shown else found

    def _filled(self, found: Value, name: str, frame: Frame) -> Value:
        """A tensor that is filled item by item: it has the graph of what is put into it."""
        stored = (one.value for one in frame.flow.stored.get(name, ()) if not one.path)
        given = [value for one in stored if (value := self._evaluator.value_of(one, frame)).graph]
        graph = max((one.graph for one in given), default=found.graph)
        return found.but(graph=graph, origins=found.origins.union(*(one.origins for one in given)))

    def _is_dead(self, definition: Definition, frame: Frame) -> bool:
        """Whether a definition is not gotten to, as far as that can be said without asking all who call the function."""
        statement, flow = definition.statement, frame.flow
        if statement not in flow.blocks:
            return False
        for test, wanted in flow.conditions(statement):
            if frame.given is not None or not _asks_for_parameters(flow, test):
                if self._evaluator.truth(test, frame) is (not wanted):
                    return True
        return statement in flow.unreachable

    def outer(self, name: str, frame: Frame) -> Value:
        """A name that a function does not bind itself: of a function around it, of the module, or Python's own."""
        for around in frame.function.around[1:]:
            if found := around.flow.definitions.get(name):
                where = self._evaluator.root(around)
                for _, caller in frame.chain():  # a closure that is called where it was made
                    where = caller if caller.function is around else where
                return join(self._evaluator.definition(one, where) for one in found if one.kind != "delete")
        program, table, file = self._evaluator.program, self._evaluator.table, frame.function.file
        if not program.binds(file, name) and not hasattr(builtins, name) and not table.knows(name):
            return UNKNOWN
        return self.named(program.top_level(file, name))

    def named(self, found: Any) -> Value:
        """The value of what a name of a module leads to."""
        if isinstance(found, str):
            row = self._evaluator.table.function(found)
            types = row is not None and row.gives == "fresh" and row.device in ("host", "cuda")
            return Value("library", ref=found, device=row.device if types else "?")  # type: ignore[union-attr,arg-type]
        if isinstance(found, Function):
            return Value("function", ref=found)
        if isinstance(found, Class):
            return Value("class", ref=found)
        if isinstance(found, Bound):
            frame = self._evaluator.root(found.file.body)
            given = (one for one in found.definitions if one.kind != "delete")
            value = join(
                (*(self._evaluator.definition(one, frame) for one in given), *self._elsewhere(found))
            )
            role = self.role(found.definitions[0].key, found.file.body) if not value.is_known else None
            return role.but(origins=value.origins, device=value.device) if role is not None else value
        return Value("library", ref=found) if isinstance(found, File) else UNKNOWN

    def member(self, module: Value, name: Any, file: File) -> Value:
        """What a module has by a name, or by one that is not known: then any of its functions or classes, as far as they are alike."""
        program = self._evaluator.program
        if not isinstance(module.ref, File):
            full = f"{module.ref}.{name if isinstance(name, str) else '?'}"
            is_known = isinstance(name, str) or self._evaluator.table.function(full) is not None
            return self.named(program.imported(file, full)) if is_known else UNKNOWN
        if isinstance(name, str):
            return self.named(program.member(module.ref, [name]))
        first, *more = [self.named(one) for one in program.members(module.ref)[:MOST_MEMBERS]] or [UNKNOWN]
        return first.but(others=tuple(one.ref for one in more))

    def _elsewhere(self, found: Bound) -> list[Value]:
        """What functions give a module's name by `global`."""
        name = found.definitions[0].key
        named = (one for one in found.file.naming(name) if "global" in one.words and not one.is_module)
        frames = (self._evaluator.root(one) for one in named if name in one.flow.elsewhere)
        made = ((one, frame) for frame in frames for one in frame.flow.definitions.get(name, ()))
        return [self._evaluator.definition(*one) for one in made]

    # -- parameters

    def parameter(self, definition: Definition, frame: Frame) -> Value:
        """What a parameter is given: by the frame's call, else by all calls, else what its annotation or its use says."""
        function, name = frame.function, definition.key
        node = definition.node
        if isinstance(node, ast.arg) and frame.flow.parents.get(node) is not function.node:
            return self._mapped(node, frame)
        if function.takes_self and name == function.self_name and function.cls is not None:
            return frame.receiver if frame.receiver is not None else self.instance(function.cls)
        if function.takes_class and node is function.parameters[0]:
            return Value("class", ref=function.cls)
        if node is function.node.args.vararg:
            return self._by_position(definition, frame)
        if node is function.node.args.kwarg:
            return self._by_names(definition, frame)
        if frame.given is not None:
            if isinstance(known := frame.given.get(name), Value):
                return known
            if (given := frame.argument(name)) is not None:
                value = self._evaluator.value_of(*given)
                if value.is_known or value.graph:
                    return self._shown(value, name, function)
                return self._by_role(definition, frame, value)
            if (by_name := self._in_stars(frame.call, frame.caller, name)) is not None:
                return by_name
            default = default_of(function.node, name)
            if default is not None:
                return self._evaluator.value_of(default, self._evaluator.root(function))
            return self._by_role(definition, frame, UNKNOWN)
        return self._of_all_calls(definition, frame)

    def _mapped(self, node: ast.arg, frame: Frame) -> Value:
        """What a lambda is given by the frame, or by `map`, a thing at a time; of others nobody knows."""
        if isinstance(given := (frame.given or {}).get(node.arg), Value):
            return given
        function = frame.flow.parents.get(node)
        call = frame.flow.parents.get(function)
        if not isinstance(call, ast.Call) or last_name(call.func) != "map" or call.args[:1] != [function]:
            return UNKNOWN
        things = dict(zip(function.args.args, call.args[1:], strict=False))  # type: ignore[union-attr]
        if (thing := things.get(node)) is None:
            return UNKNOWN
        return self._evaluator.element(self._evaluator.value_of(thing, frame))

    def _by_position(self, definition: Definition, frame: Frame) -> Value:
        """What `*args` holds: what the frame's call gives beyond the parameters that the function names."""
        origins, given = frozenset({(definition.node, frame)}), (frame.given or {}).get(definition.key)
        if not isinstance(given, tuple):
            return Value("list", origins=origins)
        values = [self._evaluator.value_of(one, given[2]) for one in frame.call.args[given[1] :]]
        return Value("list", receiver=join(values), origins=origins)

    def _by_names(self, definition: Definition, frame: Frame) -> Value:
        """What `**kwargs` holds: what the frame's call gives by names that the function does not name itself."""
        origins = frozenset({(definition.node, frame)})
        calls = outwards(self._evaluator, frame)
        if len(calls) != 1:
            return Value("dict", origins=origins)
        (call, caller), own = calls[0], {one.arg for one in frame.function.parameters}
        named = (one for one in call.keywords if one.arg is not None and one.arg not in own)
        parts = tuple((one.arg, self._evaluator.value_of(one.value, caller)) for one in named)
        for more in (self._evaluator.value_of(one.value, caller) for one in call.keywords if one.arg is None):
            parts += more.parts or (("**", self._evaluator.element(more.but(parts=None))),)  # `**losses`
        return Value("dict", parts=parts, origins=origins)

    def _in_stars(self, call: Any, frame: Any, name: str) -> Value | None:
        """What a call gives a parameter by a dict: `Trainer(**options)`."""
        dicts = (one.value for one in getattr(call, "keywords", ()) if one.arg is None)
        several = (dict(self._evaluator.value_of(one, frame).parts or ()) for one in dicts)
        return next((parts[name] for parts in several if name in parts), None)

    def _of_all_calls(self, definition: Definition, frame: Frame) -> Value:
        function, name = frame.function, definition.key
        annotation = getattr(definition.node, "annotation", None)
        declared = self.annotated(annotation, definition.node, frame) if annotation is not None else UNKNOWN
        values = []
        if declared.kind not in ("number", "text", "tensor"):  # which tell as much as who gives them
            for site in self._evaluator.callers(function)[:CALLERS_ASKED]:
                is_bound = function.takes_self and not self._through_class(site.call, site.frame)
                bound = bind(function, site.call, site.frame, function.takes_class or is_bound)
                unseen = UNKNOWN if any(isinstance(one, ast.Starred) for one in site.call.args) else BOTTOM
                by_name = self._in_stars(site.call, site.frame, name) or unseen
                values.append(self._evaluator.value_of(*bound[name]) if name in bound else by_name)
            default = default_of(function.node, name)
            is_none = isinstance(default, ast.Constant) and default.value is None
            all_give = bool(values) and BOTTOM not in values
            if default is not None and not all_give and not (is_none and values):
                given = self._evaluator.value_of(default, self._evaluator.root(_around(function)))
                # whoever is not seen may switch it
                if not values and given.kind == "none":
                    given = UNKNOWN
                elif not values and (isinstance(given.const, bool) or given.const == "cpu"):
                    given = given.without_const
                elif not values and given.kind == "device":
                    given = given.but(device="?")
                values.append(given)
        found = join(values) if values else UNKNOWN
        if declared.is_known and self._is_unseen(found):
            found = declared
        elif found.assumptions and found.kind == declared.kind:
            found = found.but(assumptions=())  # declared, whatever the callers' names for it say
        if self._is_unseen(found) or (found.kind in ("none", "number", "text") and not values):
            found = self._by_role(definition, frame, found)
        if not found.origins and found.kind in ("module", "list", "dict", "object", "optimizer", "unknown"):
            found = found.but(origins=frozenset({(definition.node, frame)}))
        return found

    def _is_unseen(self, value: Value) -> bool:
        """Whether nothing tells what a value is: what others import from where nobody sees is as good as unknown."""
        is_strange = value.kind == "library" and self._evaluator.table.function(str(value.ref)) is None
        return is_strange or not value.is_known

    def _through_class(self, call: Any, frame: Frame) -> bool:
        """Whether a method is called through its class, which gives it its object as the first argument."""
        on = called_on(call)
        return on is not None and self._evaluator.value_of(on, frame).kind == "class"

    def annotated(self, annotation: Any, node: Any, frame: Frame) -> Value:
        """What the annotation of a node says."""
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            try:
                annotation = ast.parse(annotation.value, mode="eval").body
            except SyntaxError:
                return UNKNOWN
        if isinstance(annotation, ast.BinOp):
            return join(self.annotated(one, node, frame) for one in (annotation.left, annotation.right))
        if isinstance(annotation, ast.Constant) and annotation.value is None:
            return BOTTOM
        given = [annotation.slice] if isinstance(annotation, ast.Subscript) else []
        given = getattr(given[0], "elts", given) if given else []  # `Tensor, int` of `dict[Tensor, int]`
        spelled = dotted(annotation.value if given else annotation)
        if spelled is None:
            return UNKNOWN
        origin = frozenset({(node, frame)})
        last = spelled.rpartition(".")[2]
        if given and last in ("Optional", "Union", "Annotated"):
            return join(self.annotated(one, node, frame) for one in given)
        if (kind := _CONTAINERS.get(last)) is not None:
            # of a dict what it holds, not its keys
            item = self.annotated(given[-1], node, frame) if given else UNKNOWN
            return Value(kind, origins=origin, receiver=item if item.kind == "tensor" else None)
        if last in _PLAIN:
            return _PLAIN[last]
        found = self._evaluator.program.resolve(frame.function.file, spelled, frame.function.parent)
        if isinstance(found, Class):
            return self.instance(found).but(origins=origin)
        if not isinstance(found, str):
            return UNKNOWN
        row = self._evaluator.table.function(found)
        if given and row is not None and row.gives == "argument":
            return self.annotated(given[0], node, frame)
        return self._of_library_type(found).but(origins=origin)

    def _of_library_type(self, full: str) -> Value:
        row = self._evaluator.table.function(full)
        is_tensor = full in ("torch.Tensor", "torch.FloatTensor")
        if is_tensor or (row is not None and row.does == "annotates"):
            return Value("tensor", graph=Graph.MAY)
        if full.endswith("optim.Optimizer"):
            return Value("optimizer")
        if row is not None and row.gives in _TYPES:
            return Value(row.gives)  # type: ignore[arg-type]
        return UNKNOWN

    # -- roles

    def _by_role(self, definition: Definition, frame: Frame, otherwise: Value) -> Value:
        """What the uses of a key make of it; what only its name says is an assumption."""
        found = self.role(definition.key, frame.function)
        if found is None or _makes_its_like(frame.flow, definition):
            return otherwise
        origins = otherwise.origins or found.origins or frozenset({(definition.node, frame)})
        return found.but(origins=origins, device=otherwise.device)

    def used(self, node: Any, frame: Frame) -> Value | None:
        """The role that an expression plays in its function, where it has a key."""
        key = key_of(node)
        return self.role(key, frame.function) if key is not None else None

    @remembering(None)
    def role(self, key: str, function: Function, depth: int = 2) -> Value | None:
        """The role that a key plays in a function: a network is what is asked for its parameters."""
        flow, rows = function.flow, self._evaluator.table
        uses = flow.uses_as(key)
        asked = {name for node in uses for name in _asked(flow, node)}
        if self._runs_as_network(key, function):
            return Value("module")
        for kind, found in _ROLES.items():
            if asked & rows.knows(f"asked.{kind}").keys():
                return found.but(graph=Graph.LIVE) if kind == "tensor" and "backward" in asked else found
        given = (self._as_argument(node, function, depth) for node in (uses if depth else ()))
        if (role := next((one for one in given if one is not None), None)) is not None:
            return role
        last = key.rpartition(".")[2]
        # as names of classes are written, or asked as a class is
        is_class = last[:1].isupper() or "__name__" in asked
        above = [(flow.parents.get(node), node) for node in uses]
        calls = [call for call, node in above if isinstance(call, ast.Call) and call.func is node]
        for kind in () if is_class else ("module", "optimizer", "tensor"):
            names = rows.knows(f"named.{kind}")
            if calls and (kind != "module" or not any(map(arguments, calls))):
                continue
            known = rows.knows(kind).keys() | rows.knows(f"{kind}.attributes").keys()
            if kind != "module" and asked and asked.isdisjoint(known):
                continue  # `opt.batch_size`: it is asked for nothing that one has
            if last in names or (kind != "tensor" and last.lower().split("_")[-1] in names):
                word = "network" if kind == "module" else kind
                return _ROLES[kind].assuming(Assumption(f"only its name says that `{key}` is a {word}"))
        return None

    def _runs_as_network(self, key: str, function: Function) -> bool:
        """Whether a key is moved in place, as only a network can be, or called for what goes backward."""
        flow = function.flow
        is_method = "." in key and key.rpartition(".")[0] != function.self_name
        is_class = key[:1].isupper() and key[1:2].islower()  # what it is called for is made, and not run
        for node in flow.uses_as(key):
            *_, (moved, above) = _moved(flow, node, _IN_PLACE)
            if isinstance(moved, ast.Call) and _is_alone(flow, moved):
                return True
            runs = isinstance(above, ast.Call) and above.func is node and bool(above.args)
            if runs and not (is_method or is_class) and goes_backward(flow, above):
                return True
        return False

    def _as_argument(self, node: Any, function: Function, depth: int) -> Value | None:
        """The role that what is called gives an argument, the same thing moved."""
        *_, (node, above) = _moved(function.flow, node)
        if isinstance(above, ast.Assign) and function.cls is not None and function.takes_self:
            own, _, name = (key_of(above.targets[0]) or "").partition(".")
            is_own = own == function.self_name and name and "." not in name
            found = self.used_as(function.cls, name) if is_own else None
            return found.but(origins=frozenset()) if found is not None and not found.assumptions else None
        if not isinstance(above, ast.Call) or node is above.func:
            return None
        spelled = dotted(above.func)
        if spelled is None:
            return None
        target: Any = self._evaluator.program.resolve(function.file, spelled, function)
        own, _, name = spelled.partition(".")
        if function.cls is not None and own == function.self_name and name:
            target = self._evaluator.method(function.cls, name)
        if isinstance(target, Class):
            target = self._evaluator.method(target, "__init__")
        if not isinstance(target, Function) or target is function:
            return None
        names = [one.arg for one in target.parameters][1 if target.takes_self else 0 :]
        given = next((name for name, one in zip(names, above.args, strict=False) if one is node), None)
        found = self.role(given, target, depth - 1) if given is not None else None
        return found if found is not None and not found.assumptions else None

    def used_as(self, cls: Class, name: str) -> Value | None:
        """What the methods of a class make of an attribute by how they use it; what a name alone says comes last."""
        guess: Value | None = None
        origins = frozenset({((cls, name), None)})
        for method, key in methods_naming(self._evaluator.program.lineage(cls), name):
            found = self.role(key, method)
            if found is not None and not found.assumptions:
                return found.but(origins=origins)
            guess = guess or found
        return guess.but(origins=origins) if guess is not None else None

    # -- objects

    def instance(self, cls: Class) -> Value:
        """An object of a class of the project."""
        return Value("module" if self.is_part_of_modules(cls) else "object", ref=cls)

    def is_module(self, cls: Class) -> bool:
        """Whether a class derives from torch's modules, or from what wraps one."""
        table = self._evaluator.table
        names = self._evaluator.program.library_bases(cls)
        own = [one for one in names if one.partition(".")[0] not in table.knows("other-frameworks")]
        rows = (table.function(one) for one in own if "." in one)
        by_name = any(one.rpartition(".")[2] in MODULE_BASES for one in own)
        return by_name or any(row is not None and row.gives in ("module", "argument") for row in rows)

    def is_part_of_modules(self, cls: Class | None) -> bool:
        """Whether a class is one of torch's modules, or is mixed into nothing else."""
        if cls is None or self.is_module(cls):
            return cls is not None
        derived = self._evaluator.program.subclasses(cls)
        return bool(derived) and all(map(self.is_module, derived))

    @remembering(())
    def fields(self, cls: Class, name: str) -> tuple[tuple[Function, Definition], ...]:
        """Where an attribute of an object of a class gets its values: in its own methods, those it inherits, and where none of them
        has it in those of the classes that derive from it."""
        program = self._evaluator.program
        return tuple(self._set_in(program.lineage(cls), name) or self._set_in(program.subclasses(cls), name))

    @remembering(False)
    def is_set_by_others(self, cls: Class, name: str) -> bool:
        """Whether code outside of a class sets such an attribute, of whatever object."""
        return any(key in function.flow.definitions for function, key in self.named_by_others(cls, name))

    def named_by_others(self, cls: Class, name: str) -> Iterator[tuple[Function, str]]:
        """The functions outside of a class that name such an attribute, of whatever object, each with its keys for it."""
        own = self._evaluator.program.lineage(cls)
        for file in self._evaluator.program.searched(name, cls.file):
            for function in file.naming(name):
                if function.cls in own and function.takes_self:
                    continue
                of_another = f"{function.self_name}.{name}" if self.is_apart(function, cls) else ""
                for key in function.flow.uses.keys() | function.flow.definitions.keys():
                    if key.endswith(f".{name}") and key != of_another:
                        yield function, key

    def is_apart(self, function: Function, cls: Class) -> bool:
        """Whether a method is of a class that has nothing to do with another one."""
        if function.cls is None or not function.takes_self:
            return False
        return cls not in self._evaluator.program.lineage(function.cls)

    def _set_in(self, classes: Iterable[Class | str], name: str) -> list[tuple[Function, Definition]]:
        found: list[tuple[Function, Definition]] = []
        for cls in (one for one in classes if isinstance(one, Class)):
            for method, key in methods_naming((cls,), name):
                made = method.flow.definitions.get(key, ())
                found += [(method, one) for one in made if one.kind not in ("delete", "inplace")]
            made = cls.body.flow.definitions.get(name, ()) if name in cls.body.words else ()
            found += [(cls.body, one) for one in made if one.kind in ("assign", "class")]
        return found


def _asks_for_parameters(flow: Flow, test: Any) -> bool:
    found = lambda: any(one.kind == "parameter" for one in flow.bound_in(test))  # noqa: E731
    return bool(remembered(flow.known, (_asks_for_parameters, test), False, found))


def _asked(flow: Flow, node: Any) -> Iterator[str]:
    """What a thing is asked for at one use, and what the same thing is asked for by what moves it: `net.cuda().eval()`."""
    for _, above in _moved(flow, node):
        if isinstance(above, ast.Attribute):
            call = flow.parents.get(above)
            if above.attr in _BACKWARD and isinstance(call, ast.Call) and call.args:
                continue  # what goes backward through something else is no tensor: `accelerator.backward(loss)`
            given = arguments(call) if isinstance(call, ast.Call) else [call]
            on = above.attr == "requires_grad_" and all(getattr(one, "value", None) is True for one in given)
            yield "requires_grad" if on else above.attr  # a network's is seldom switched on by it


def _moved(flow: Flow, node: Any, by: Collection[str] = _SAME) -> Iterator[tuple[Any, Any]]:
    """A thing as it is, and as it is moved, `net.to(device)`, or changed in place otherwise, each with what that is in."""
    while True:
        above = flow.parents.get(node)
        yield node, above
        call = flow.parents.get(above) if isinstance(above, ast.Attribute) and above.attr in by else None
        if not isinstance(call, ast.Call) or call.func is not above:
            return
        node = call


def _makes_its_like(flow: Flow, definition: Definition) -> bool:
    """Whether a name is called for what takes its name, `model = model(width)`: what the name is used as then, the second is."""
    calls = ((flow.parents.get(use), use) for use in flow.uses_of(definition))
    made = (call for call, use in calls if isinstance(call, ast.Call) and call.func is use)
    return any(one.key == definition.key for call in made for one in flow.given.get(call, ()))


def _is_alone(flow: Flow, call: Any) -> bool:
    """Whether a call is all that its statement is, or one of several side by side."""
    above = flow.parents.get(call)
    return isinstance(flow.parents.get(above) if isinstance(above, ast.Tuple) else above, ast.Expr)


def goes_backward(
    flow: Flow, call: Any, parts: bool = True, given: bool = True, trains: Trains | None = None
) -> bool:
    """Whether a backward goes through what a call gives, or a part of it, as far as its own function shows; `given`: also where it
    goes through what another call makes of it, but for one that `trains`: that is differentiated by weights of its own."""
    key = (goes_backward, call, parts, given)
    found = remembered(flow.known, key, False, lambda: _goes_backward(flow, call, 5, parts, given, None))
    return bool(found) and (trains is None or _goes_backward(flow, call, 5, parts, given, trains))


def _goes_backward(
    flow: Flow, call: Any, depth: int, parts: bool, given: bool, trains: Trains | None
) -> bool:
    node, is_part = call, False
    while (above := flow.parents.get(node)) is not None and not isinstance(above, ast.stmt):
        is_part = is_part or isinstance(above, ast.Subscript) or _is_of_others(above)
        if is_part and isinstance(above, ast.BinOp) and _is_computed_with(above, node):
            return False
        if isinstance(above, ast.Subscript) and not parts:
            return False
        if isinstance(above, ast.Attribute) and above.attr == "backward":
            return True
        if isinstance(above, ast.Call) and node in above.args:
            if _goes_through(above, node):
                return True
            if not given or (trains is not None and trains(above)):
                return False
        if isinstance(above, ast.BinOp) and isinstance(above.op, (ast.Add, ast.Sub)) and not given:
            return False  # what it is added to may be what has a graph
        if isinstance(above, ast.Attribute) and _ends_graph(above.attr):
            return False
        if isinstance(above, (ast.Compare, ast.comprehension, ast.Lambda)):
            return False
        if node is call and isinstance(above, ast.Call) and above.func is node:
            return False  # what is called is no tensor
        node = above
    if not isinstance(above, (ast.Assign, ast.AugAssign, ast.AnnAssign)) or not depth:
        return False
    return any(
        _goes_backward(flow, use, depth - 1, parts, given, trains)
        for definition in flow.given.get(above.value, ())
        if parts or not definition.path
        for use in flow.uses_of(definition)
        if flow.order.get(flow.statement_of(use), 0) > flow.order.get(above, 0)
    )


def _is_of_others(node: Any) -> bool:
    """Whether a node asks for what no tensor has: `output.loss`, or `options.steps`."""
    if not isinstance(node, ast.Attribute) or node.attr in _BACKWARD:
        return False
    return table().own("tensor", node.attr) is None and table().own("tensor.attributes", node.attr) is None


def _is_computed_with(sum_of: ast.BinOp, part: Any) -> bool:
    """Whether a part of something is computed with what is none of it, which may be what has the graph."""
    other = sum_of.right if part is sum_of.left else sum_of.left
    own = {one.id for one in ast.walk(part) if isinstance(one, ast.Name)}
    return any(one.id not in own for one in ast.walk(other) if isinstance(one, ast.Name))


def _ends_graph(name: str) -> bool:
    """Whether what a tensor is asked for has its graph no more."""
    row = table().own("tensor", name) or table().own("tensor.attributes", name)
    return row is not None and (row.graph != "keeps" or row.reads) and row.does != "backward"


def _goes_through(call: ast.Call, node: Any) -> bool:
    """Whether a call goes backward through its argument: also `grad(loss, inputs)`, which is given what it is differentiated by."""
    name = last_name(call.func)
    return name in _BACKWARD or (name == "grad" and node is call.args[0] and len(call.args) > 1)


_ROLES = {"module": Value("module"), "optimizer": Value("optimizer"), "scaler": Value("scaler")}
_ROLES["tensor"] = Value("tensor", graph=Graph.MAY)


def _around(function: Function) -> Function:
    """What the defaults of a function's parameters are worked out in."""
    return function.parent or (function.cls.body if function.cls is not None else function.file.body)
