"""What calls give: functions of the project by what they return, library functions by the table, all else by what goes in."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from gpulint.analysis.domain.values import (
    NONE,
    NUMBER,
    TEXT,
    UNKNOWN,
    UNSET,
    Assumption,
    Device,
    Graph,
    Size,
    Value,
    in_text_order,
    join,
    listed,
    together,
)
from gpulint.analysis.evaluate.frames import Evaluating, Frame, outwards
from gpulint.analysis.evaluate.names import CALLERS_ASKED, goes_backward
from gpulint.analysis.models.table import Row
from gpulint.analysis.project.file import Class, File, Function
from gpulint.analysis.syntax.flow import Definition, Flow
from gpulint.analysis.syntax.nodes import argument, arguments, called_on, key_of, keyword
from gpulint.analysis.syntax.remembering import remembering

# Kinds whose methods the table knows as they are.
_TABLED = frozenset(
    "optimizer scheduler scaler accelerator logger clock list dict set state array text".split()
)


class Calling:
    """Evaluates calls for an evaluator."""

    def __init__(self, evaluator: Evaluating) -> None:
        self._evaluator = evaluator
        self.answers: dict[Any, Any] = {}

    def call(self, node: ast.Call, frame: Frame) -> Value:
        """What a call gives."""
        func = node.func
        if isinstance(func, ast.Name) and func.id == "super":
            return self._base_of(frame)
        if isinstance(func, ast.Attribute):
            base = self._evaluator.value_of(func.value, frame)
            found = self._method(base, func.attr, node, frame)
            if found is not None:
                return found
        return self.of(self._evaluator.value_of(func, frame), node, frame)

    def of(self, target: Value, node: ast.Call, frame: Frame) -> Value:
        """What calling a value gives."""
        kind = target.kind
        if target.others:
            return join(self.of(one, node, frame) for one in target.each)
        if kind == "function" and target.ref is not None:
            return self.project(target.ref, node, frame, target.receiver)
        if kind == "class":
            return self._made(target.ref, node, frame)
        if kind in ("module", "loaded"):
            return self.forward(target, node, frame)
        method = self._evaluator.method(target.ref, "__call__") if kind == "object" else None
        if method is not None:
            return self.project(method, node, frame, target)
        row = self._evaluator.table.function(target.full_name) if target.full_name else None
        if row is not None:
            base = self.all_given(node, frame) if row.gives in _BY_GIVEN else UNKNOWN
            return self._by_row(row, base, node, frame)
        # nobody calls one: what was taken to give it has made what gives one
        if kind == "tensor" and target.assumptions:
            return target.but(kind="unknown", graph=Graph.MAY, origins=frozenset({(node, frame)}))
        return self._unseen(node, frame, UNKNOWN if target.full_name else target)

    def _base_of(self, frame: Frame) -> Value:
        cls = frame.function.cls
        several = self._evaluator.program.bases(cls) if cls is not None else ()
        base = next((one for one in several if isinstance(one, Class)), None)
        if base is None and (cls is None or self._evaluator.instance(cls).kind != "module"):
            return UNKNOWN
        kind: Any = "object" if base is not None else "module"
        return (frame.receiver or Value(kind)).but(ref=base, others=())

    # -- the project's

    def project(self, function: Function, node: ast.Call, frame: Frame, receiver: Value | None) -> Value:
        """What a function of the project gives for one call."""
        if "contextmanager" in function.decorators:
            return self._managed(function)
        inner = self._evaluator.enter(function, node, frame, receiver)
        if inner is None and function is frame.function:
            return UNKNOWN.assuming(Assumption(f"`{function.name}` calls itself", node))
        found = self._evaluator.returned(inner or self._evaluator.root(function))
        if inner is None:  # what is deeper is of no call in sight
            found = _made_at(found, frozenset({(node, frame)}))
        if not found.graph and found.kind in ("tensor", "unknown"):
            # what a tensor in sight is given to may have a graph of its own
            known = found.kind == "tensor" and not found.assumptions
            if self._goes_backward(node, frame, parts=False, given=not known):  # what it is made of has one
                return found.but(kind="tensor", graph=Graph.LIVE, origins=frozenset({(node, frame)}))
        return found

    def _managed(self, function: Function) -> Value:
        """A context manager of the project: it switches grad off where the statement that yields stands under a guard."""
        frame = self._evaluator.root(function)
        given = [one.value for one in function.flow.yields if one.value is not None]
        off = any(self._evaluator.grad_is_off(one, frame) for one in function.flow.yields)
        receiver = join(self._evaluator.value_of(one, frame) for one in given)
        return Value("context", ref="off" if off else None, receiver=receiver)

    def _made(self, cls: Class, node: ast.Call, frame: Frame) -> Value:
        found = self._evaluator.instance(cls).but(origins=frozenset({(node, frame)}))
        for one in self._evaluator.program.library_bases(cls):
            row = self._evaluator.table.function(one) if "." in one else None
            if row is not None and row.gives in ("optimizer", "loader", "scheduler"):
                return found.but(kind=row.gives)
        return found

    def forward(self, target: Value, node: Any, frame: Frame) -> Value:
        """What a network gives for what it is given."""
        site = frozenset({(node, frame)})
        method_of = self._evaluator.method
        method = method_of(target.ref, "forward") or method_of(target.ref, "__call__")
        given, row = self.all_given(node, frame), self.made_by(target)
        if method is not None and isinstance(node, ast.Call):
            found = self.project(method, node, frame, target)
            if found.graph is Graph.LIVE and found.kind == "tensor":
                return found.but(origins=site | given.origins if given.graph else site)
            if found.is_known:
                return found
        if row is not None and row.weights == "none":
            reduces = all(not isinstance(made, ast.Call) or _reduction(made) for made, _ in target.origins)
            size: Size = "scalar" if row.size == "loss" and reduces else given.size
            found = Value("tensor", given.graph, given.device, size, UNSET, given.origins)
            return found.assuming(*given.assumptions)
        off = self._evaluator.grad_is_off(node, frame)
        graph, origins = Graph.NONE if off else Graph.LIVE, given.origins if off else site | given.origins
        # on a GPU where something that it is given is: that goes through none that is not
        values = self._each_given(node, frame)
        on_gpu = any(one.device == "cuda" and one.kind in ("tensor", "unknown") for one in values)
        device: Device = "cuda" if on_gpu else "?"
        found = Value("tensor", graph, device, "batch", origins=origins, assumptions=target.assumptions)
        # what its own forward gives, of which nothing is seen, may be anything
        return found if method is None else found.but(kind="unknown")

    def made_by(self, target: Value) -> Row | None:
        """The row of the library's constructor that made a network, where one did: of several, one with weights before one without."""
        names = (self._evaluator.value_of(call.func, frame).full_name for call, frame in target.calls)
        rows = [self._evaluator.table.function(full) for full in names if full]
        return min(rows, key=lambda row: row is not None and row.weights == "none", default=None)

    # -- methods

    def _method(self, base: Value, name: str, node: ast.Call, frame: Frame) -> Value | None:
        kind = base.kind
        if kind in ("module", "object") and isinstance(base.ref, Class):
            methods = self._evaluator.methods(base, name)
            if methods:
                return join(self.project(method, node, frame, of_class) for method, of_class in methods)
            if kind == "object":
                return None
        if kind in ("tensor", "parameter"):
            return self._of_tensor(base, name, node, frame)
        if kind == "module":
            return self._of_module(base, name, node, frame)
        if kind == "class" and name == "apply" and self.is_operation(base.ref):
            return self.all_given(node, frame).but(kind="tensor", const=UNSET, parts=None, size="batch")
        if base.full_name:
            row = self._evaluator.table.own("class.methods", name)
            if row is None or not base.full_name.rpartition(".")[2][:1].isupper():
                return None
            device = self._placed(row, node, frame, UNKNOWN)
            made = Value("module", origins=frozenset({(node, frame)}), device=device)
            return made if not _is_tool(base.full_name) else UNKNOWN
        if kind in _TABLED:
            row = self._evaluator.table.method(kind, name)
            if row is None:
                return None if kind == "dict" else UNKNOWN  # it may be an entry
            return self._by_row(row, base, node, frame)
        if kind == "loaded" and name in ("parameters", "named_parameters"):
            return self._of_module(base, name, node, frame)
        if kind == "number":  # or as good as one: a parser, a file
            return Value("unknown", origins=frozenset({(node, frame)}))
        if kind == "unknown" and name == "eval" and not arguments(node):
            return base.but(kind="module", graph=Graph.NONE)  # nothing else has one without an argument
        row = self._evaluator.table.own("tensor", name)
        if kind == "loaded" and row is not None and name in ("to", "cuda", "cpu"):
            return base.but(device=self._placed(row, node, frame, base))
        if kind == "loaded":
            return base if name in ("get", "items", "values", "pop") else None
        if row is not None and kind in ("unknown", "bottom"):
            return self._as_tensor(base, name, row, node, frame)
        row = self._evaluator.table.own("text", name) if kind == "unknown" and not base.graph else None
        return self._by_row(row, base, node, frame) if row is not None else None

    def is_operation(self, cls: Any) -> bool:
        """Whether a class is an operation that says itself how it is differentiated: `autograd.Function`."""
        return any(one.endswith("autograd.Function") for one in self._evaluator.program.library_bases(cls))

    def _as_tensor(self, base: Value, name: str, row: Row, node: ast.Call, frame: Frame) -> Value | None:
        """A method of tensors on what is not seen: a cut is one whatever it is of."""
        if row.gives == "number" or row.reads:
            return NUMBER if row.gives == "number" else Value("array")
        if name in ("cuda", "cpu", "to", "float", "half", "double", "type", "eval", "train"):
            known = base.kind != "bottom"
            return base.but(device=self._placed(row, node, frame, base), const=UNSET) if known else base
        if row.graph == "cuts" and name in ("detach", "detach_", "argmax", "argmin"):
            return Value("tensor", device=base.device, size=base.size, assumptions=base.assumptions)
        if name == "requires_grad_" and base.kind == "unknown":
            off = argument(node, 0, "requires_grad")
            if off is None or self._evaluator.value_of(off, frame).const is True:
                return self._of_tensor(base.but(origins=frozenset()), name, node, frame)
        if not base.graph:
            return None
        keeps = row.graph == "keeps"
        return base.but(kind="tensor", const=UNSET, graph=base.graph if keeps else Graph.NONE)

    def _of_tensor(self, base: Value, name: str, node: ast.Call, frame: Frame) -> Value:
        row = self._evaluator.table.method("tensor", name)
        if row is None:
            return base
        if row.gives in _CONSTANT:
            return _CONSTANT[row.gives]
        if row.does == "requires grad":
            off = node.args and self._evaluator.value_of(node.args[0], frame).const is False
            if off or name != "requires_grad_":
                return base.but(graph=Graph.NONE if off else base.graph, kind="tensor")
            made = base.origins or frozenset({(node, frame)})
            return base.but(graph=Graph.LIVE, kind="tensor", origins=made)
        return self._transferred(row, base, node, frame, True)

    def _transferred(self, row: Row, base: Value, node: ast.Call, frame: Frame, is_method: bool) -> Value:
        """The value that an operation makes of a tensor, and of what else it is given."""
        keeps = row.graph == "keeps"
        of_form = row.view or row.does == "takes form"  # what else it is given are sizes, places, a type
        given = UNKNOWN if of_form or not keeps else self.all_given(node, frame)
        graph = max(base.graph, given.graph) if keeps else Graph.NONE
        if graph and self._evaluator.grad_is_off(node, frame):
            graph = Graph.NONE
        origins = base.origins | (given.origins if given.graph else frozenset()) if graph else frozenset()
        size: Size = "?" if row.size == "more" else base.size
        if row.size in ("scalar", "loss") and _gives_one(row, node, is_method):
            size = "scalar"
        device = self._placed(row, node, frame, base)
        found = Value("tensor", graph, device, size, origins=origins, assumptions=base.assumptions)
        if gives_pair(self._evaluator, row, node, frame, is_method):
            both = (found, found.but(graph=Graph.NONE, origins=frozenset()))
            return Value("tuple", graph, parts=both)
        return found

    def _placed(self, row: Row, node: ast.Call, frame: Frame, base: Value) -> Device:
        if row.device == "argument":
            return self.device(node, frame) or base.device
        if row.device in ("keyword", "like"):
            where = self.given(node, "device", frame)
            if where is not None:
                return self._named_device(where)
            return "host" if row.device == "keyword" else base.device
        return row.device if row.device in ("host", "cuda") else base.device  # type: ignore[return-value]

    def device(self, node: ast.Call, frame: Frame) -> Device | None:
        """Where `x.to(…)` or `x.type(torch.cuda.FloatTensor)` moves to; None where it only changes the type."""
        where = argument(node, 0, "device")
        if where is None:
            return None
        found = self._evaluator.value_of(where, frame)
        if found.full_name.startswith("torch."):
            row = self._evaluator.table.function(found.ref)
            is_placed = row is not None and row.gives == "fresh"
            return found.device if is_placed else None  # else a type that is nowhere
        return self.device_of(where, frame)

    def device_of(self, node: Any, frame: Frame) -> Device:
        """The place that an expression names."""
        return self._named_device(self._evaluator.value_of(node, frame))

    def _named_device(self, value: Value) -> Device:
        if isinstance(value.const, int) and value.kind == "number":
            return "cuda"
        return value.place if value.kind in ("device", "text", "tensor", "parameter") else "?"

    def option(self, base: Value, name: str) -> Value | None:
        """What an option of the command line is, whatever its name is: a device unless somebody asks for another, or nothing that is known."""
        for node, frame in in_text_order(base.origins):
            func = getattr(node, "func", None)
            if isinstance(func, ast.Attribute) and func.attr in ("parse_args", "parse_known_args"):
                where = self._options(frame.function.file).get(name)
                return where and (TEXT.but(device=where) if where != "?" else UNKNOWN)
        return None

    @remembering({})
    def _options(self, file: File) -> dict[str, Device]:
        """The options of the command line by name, each with the device that it has by default."""
        found: dict[str, Device] = {}
        for function, call in file.calls_named("add_argument"):
            spelled, default = call.args[-1] if call.args else None, keyword(call, "default")
            if isinstance(spelled, ast.Constant):
                frame = self._evaluator.root(function)
                given = self._evaluator.value_of(default, frame) if default is not None else UNKNOWN
                names = given.kind in ("text", "device")  # a number may be of anything
                where: Device = given.place if names else "?"
                found.setdefault(str(spelled.value).lstrip("-").replace("-", "_"), where)
        return found

    def _of_module(self, base: Value, name: str, node: ast.Call, frame: Frame) -> Value | None:
        row = self._evaluator.table.own("module", name)
        if row is None:
            if isinstance(base.ref, Class) and self._evaluator.value_of(node.func, frame).is_known:
                return None  # an attribute that is called
            if name.startswith(("save", "log", "set_", "load", "add_", "get_", "init", "__", "register_")):
                return UNKNOWN
            made = self.made_by(base)
            if made is not None and made.does == "encodes":
                return self._encoded(node, frame)
            found = self.forward(base.but(ref=None, others=()), node, frame)
            alike = (one for one in frame.flow.calls[name] if key_of(one.func) == key_of(node.func))
            if any(self._goes_backward(one, frame) for one in alike):
                return found
            return found.assuming(Assumption(f"what `{name}` of a network gives is not seen"))
        if row.gives == "forward":
            return self.forward(base, node, frame)
        if row.gives == "receiver":
            return base if row.device == "same" else base.but(device=self._placed(row, node, frame, base))
        if row.gives == "fresh":
            return Value("tensor")
        if row.gives in ("parameters", "modules", "module", "state"):
            found = Value(row.gives, origins=base.origins)  # type: ignore[arg-type]
            if not name.startswith("named_"):
                return found
            return Value("list", receiver=Value("tuple", parts=(TEXT, self._evaluator.element(found))))
        return NONE if row.gives == "none" else Value("handle")

    def _encoded(self, node: ast.Call, frame: Frame) -> Value:
        """What an encoder of a library gives, without a graph: an array, unless a tensor is asked for."""
        wanted = keyword(node, "convert_to_tensor")
        if wanted is not None and self._evaluator.value_of(wanted, frame).const is True:
            return Value("tensor", size="batch")
        return Value("array", device="host")

    # -- libraries

    def _by_row(self, row: Row, base: Value, node: ast.Call, frame: Frame) -> Value:
        """What a row of the table says of a call; `base` is the object, or what the arguments have in common."""
        method = getattr(self, f"_gives_{row.gives.replace(' ', '_')}", None)
        if method is not None:
            return method(row, base, node, frame)  # type: ignore[no-any-return]
        if (made := _MADE.get(row.gives)) is None:
            return _CONSTANT.get(row.gives, UNKNOWN)
        device = self._mapped(node, frame) if row.device == "map_location" else made.device
        return made.but(origins=frozenset({(node, frame)}), device=device)

    def _mapped(self, node: ast.Call, frame: Frame) -> Device:
        where = argument(node, 1, "map_location")
        if isinstance(where, ast.Lambda) and where.args.args and isinstance(where.body, ast.Name):
            return "host" if where.body.id == where.args.args[0].arg else "?"  # the storage as it was read
        given = self.given(node, "map_location", frame, 1)
        return self._named_device(given) if given is not None else "?"

    def given(self, call: ast.Call, name: str, frame: Frame, position: int | None = None) -> Value | None:
        """What a call gives an argument, by name, by position, or in stars, which may hold what callers give; None where it gives none."""
        where = keyword(call, name) if position is None else argument(call, position, name)
        if where is not None:
            return self._evaluator.value_of(where, frame)
        stars = [one.value for one in call.keywords if one.arg is None]
        found = (self._starred(one, name, frame) for one in stars)
        starred = position is not None and any(isinstance(one, ast.Starred) for one in call.args)
        return next((one for one in found if one is not None), UNKNOWN if starred else None)

    def _starred(self, node: Any, name: str, frame: Frame) -> Value | None:
        """What `**node` gives an argument: where it is the function's own, what those give who call it."""
        held, own = self._evaluator.value_of(node, frame), getattr(frame.function.node, "args", None)
        if own is None or (own.kwarg, frame) not in held.origins:
            return dict(held.parts or ()).get(name, UNKNOWN) if held.kind == "dict" else UNKNOWN
        asked = (Calling._by_callers, name)
        return self._evaluator.once(frame.memo, asked, frame, self._by_callers)  # type: ignore[no-any-return]

    def _by_callers(self, asked: tuple[Any, str], frame: Frame) -> Value | None:
        _, name = asked
        sites = outwards(self._evaluator, frame)[:CALLERS_ASKED]
        given = [self.given(call, name, where) for call, where in sites]
        return join(one or NONE for one in given) if any(given) else None if given else UNKNOWN

    def _gives_tensor(self, row: Row, base: Value, node: ast.Call, frame: Frame) -> Value:
        if row.graph != "keeps" or row.gives.startswith("pair"):
            return self._transferred(row, base.but(kind="tensor"), node, frame, False)
        first = self._evaluator.value_of(node.args[0], frame) if node.args else base
        inner = self._evaluator.element(first) if first.kind in ("list", "tuple") else first
        return self._transferred(row, inner, node, frame, False)

    _gives_pair = _gives_pair_or_one = _gives_tensor

    def _gives_fresh(self, row: Row, base: Value, node: ast.Call, frame: Frame) -> Value:
        wanted = self.given(node, "requires_grad", frame)
        made = Value("tensor", device=self._placed(row, node, frame, UNKNOWN))
        live = wanted is not None and wanted.const is True
        return made.but(graph=Graph.LIVE, origins=frozenset({(node, frame)})) if live else made

    def _gives_gradients(self, row: Row, base: Value, node: ast.Call, frame: Frame) -> Value:
        """`torch.autograd.grad`: with a graph of their own where they are to be differentiated again."""
        wanted = self.given(node, "create_graph", frame)
        live = wanted is not None and wanted.const is not False
        found = Value("tensor", graph=Graph.LIVE if live else Graph.NONE, size="batch")
        return Value("list", receiver=found.but(origins=base.origins) if live else found, graph=found.graph)

    def _gives_text(self, row: Row, base: Value, node: ast.Call, frame: Frame) -> Value:
        return begun_by(base)

    def _gives_device(self, row: Row, base: Value, node: ast.Call, frame: Frame) -> Value:
        named = self._first(node, frame)
        device = "cuda" if not node.args and row.device == "cuda" else self._named_device(named)
        return Value("device", device=device, const=named.const)

    def _gives_context(self, row: Row, base: Value, node: ast.Call, frame: Frame) -> Value:
        given = argument(node, 0, "mode")
        const = self._evaluator.value_of(given, frame).const if given is not None else UNSET
        if row.mode == "argument":
            return Value("context", ref="argument", const=const)
        return Value("context", ref="on" if row.mode == "off" and const is False else row.mode)

    def _gives_receiver(self, row: Row, base: Value, node: ast.Call, frame: Frame) -> Value:
        return base

    def _gives_argument(self, row: Row, base: Value, node: ast.Call, frame: Frame) -> Value:
        return self._first(node, frame).without_const

    def _gives_arguments(self, row: Row, base: Value, node: ast.Call, frame: Frame) -> Value:
        if len(node.args) == 1:
            return self._gives_argument(row, base, node, frame)
        return Value("tuple", parts=tuple(self._evaluator.value_of(one, frame) for one in node.args))

    def _gives_copy(self, row: Row, base: Value, node: ast.Call, frame: Frame) -> Value:
        return self._first(node, frame).but(origins=frozenset({(node, frame)}), const=UNSET)

    def _gives_container(self, row: Row, base: Value, node: ast.Call, frame: Frame) -> Value:
        if not node.args:
            return Value("list", origins=frozenset({(node, frame)}))
        return self._with_all_of(node.args[0], node, frame)

    def _gives_named(self, row: Row, base: Value, node: ast.Call, frame: Frame) -> Value:
        """A dict, by the names of arguments, of another one, or of pairs."""
        given = (one for one in node.keywords if one.arg)
        named = tuple((one.arg, self._evaluator.value_of(one.value, frame)) for one in given)
        found = Value("dict", origins=frozenset({(node, frame)}), parts=named or None)
        if not node.args:
            return found
        first = self._evaluator.value_of(node.args[0], frame)
        pair = self._evaluator.element(first)
        if first.kind == "list" and pair.kind == "tuple":
            return found.but(receiver=self._evaluator.element(pair, 1))
        return self._with_all_of(node.args[0], node, frame)

    def _gives_chained(self, row: Row, base: Value, node: ast.Call, frame: Frame) -> Value:
        return join(self._with_all_of(one, node, frame) for one in node.args) if node.args else UNKNOWN

    def _gives_filtered(self, row: Row, base: Value, node: ast.Call, frame: Frame) -> Value:
        return self._with_all_of(node.args[1], node, frame) if len(node.args) == 2 else UNKNOWN

    def _with_all_of(self, things: Any, node: ast.Call, frame: Frame) -> Value:
        value = self._evaluator.value_of(things, frame)
        if value.kind in ("loader", "unknown", "modules", "parameters", "dict", "module"):
            return value
        return listed(self._evaluator.element(value), frozenset({(node, frame)}))

    def _first(self, node: ast.Call, frame: Frame, position: int = 0) -> Value:
        """What a call is given first, or at another position."""
        given = node.args[position : position + 1]
        return self._evaluator.value_of(given[0], frame) if given else UNKNOWN

    def _gives_empty_dict(self, row: Row, base: Value, node: ast.Call, frame: Frame) -> Value:
        made, origins, entry = self._first(node, frame), frozenset({(node, frame)}), None
        if made.kind == "class" and isinstance(made.ref, Class):  # `defaultdict(Meter)`
            entry = self._evaluator.instance(made.ref).but(origins=origins)
        return Value("dict", origins=origins, receiver=entry)

    def _gives_record(self, row: Row, base: Value, node: ast.Call, frame: Frame) -> Value:
        """`namedtuple("Step", "loss value")`: a class with these fields."""
        fields = _texts(node.args[1]) if len(node.args) > 1 else []
        text = "".join(f"\n    {one}: object" for one in fields) or " ..."
        made: Any = ast.parse(f"class record(tuple):{text}").body[0]
        return Value("class", ref=Class(made, frame.function.file, None))

    def _gives_sum(self, row: Row, base: Value, node: ast.Call, frame: Frame) -> Value:
        return self._evaluator.element(self._first(node, frame)).without_const if node.args else NUMBER

    def _gives_element(self, row: Row, base: Value, node: ast.Call, frame: Frame) -> Value:
        if isinstance(node.func, ast.Attribute):
            index = self._first(node, frame).const
            return self._evaluator.element(base, index if isinstance(index, (int, str)) else None)
        values = [self._evaluator.value_of(one, frame) for one in node.args]
        of_first = values and (len(values) == 1 or values[1].kind == "none")
        return self._evaluator.element(values[0]) if of_first else join(values)

    def _gives_elements(self, row: Row, base: Value, node: ast.Call, frame: Frame) -> Value:
        if base.kind == "dict" and base.parts:
            return Value("list", receiver=self._evaluator.any_entry(base), origins=base.origins)
        return listed(self._evaluator.element(base), base.origins)

    def _gives_pairs(self, row: Row, base: Value, node: ast.Call, frame: Frame) -> Value:
        inner = self._gives_elements(row, base, node, frame)
        return Value("list", receiver=Value("tuple", parts=(TEXT, inner.receiver)), graph=inner.graph)

    def _gives_zip(self, row: Row, base: Value, node: ast.Call, frame: Frame) -> Value:
        if any(isinstance(one, ast.Starred) for one in node.args):
            return UNKNOWN
        parts = tuple(self._evaluator.element(self._evaluator.value_of(one, frame)) for one in node.args)
        return Value("list", receiver=Value("tuple", parts=parts))

    def _gives_enumerate(self, row: Row, base: Value, node: ast.Call, frame: Frame) -> Value:
        element = self._evaluator.element(self._first(node, frame))
        return Value("list", receiver=Value("tuple", parts=(NUMBER, element)))

    def _gives_module_and_transform(self, row: Row, base: Value, node: ast.Call, frame: Frame) -> Value:
        parts = (Value("module", origins=frozenset({(node, frame)})), UNKNOWN, UNKNOWN)
        return Value("tuple", parts=parts[: 3 if "transforms" in (key_of(node.func) or "") else 2])

    def _gives_called(self, row: Row, base: Value, node: ast.Call, frame: Frame) -> Value:
        """`checkpoint(function, *args)`."""
        target = self._first(node, frame)
        runs = target.kind == "module"
        return self.forward(target, node, frame) if runs else Value("tensor", graph=Graph.MAY)

    def _gives_mapped(self, row: Row, base: Value, node: ast.Call, frame: Frame) -> Value:
        """`map(lambda x: …, things)`."""
        function = node.args[0] if node.args else None
        if not isinstance(function, ast.Lambda):
            return UNKNOWN
        return listed(self._evaluator.value_of(function.body, frame), frozenset({(node, frame)}))

    def _gives_part(self, row: Row, base: Value, node: ast.Call, frame: Frame) -> Value:
        """`getattr(net, name)`: what has a name that is worked out; of a network a part of it, as long as it is called."""
        whole, name = self._first(node, frame), self._first(node, frame, 1).const
        if isinstance(name, str):
            return self._evaluator.attribute(whole, name, node, frame)
        if whole.kind == "library":
            return self._evaluator.member(whole, None, frame.function.file)
        return Value("module", origins=whole.origins) if whole.kind == "module" else UNKNOWN

    def _unseen(self, node: ast.Call, frame: Frame, target: Value) -> Value:
        """What code gives that is not seen: perhaps what it was given, with its graph."""
        given = self.all_given(node, frame)
        if target.graph and not given.graph:  # a method of what has one
            given = target
        if self._goes_backward(node, frame, parts=False):
            origins = given.origins if given.graph else frozenset()
            return Value("tensor", graph=Graph.LIVE, origins=origins | {(node, frame)})
        if self._goes_backward(node, frame):  # through a part of it
            return Value("unknown", graph=Graph.LIVE, origins=frozenset({(node, frame)}))
        if given.graph is Graph.NONE:
            return Value("unknown", origins=frozenset({(node, frame)}))
        name = key_of(node.func) or getattr(node.func, "attr", "the call")
        guess = Assumption(f"what `{name}` gives is not seen", node)
        found = Value("unknown", Graph.MAY, origins=given.origins, assumptions=given.assumptions)
        return found.assuming(guess)

    def _goes_backward(self, node: ast.Call, frame: Frame, parts: bool = True, given: bool = True) -> bool:
        """Whether a backward shows that what a call gives has a graph: one through a network that it is given to does not."""

        def trains(call: ast.Call) -> bool:
            network = self._evaluator.value_of(call.func, frame)
            row = self.made_by(network)
            return network.kind == "module" and (row is None or row.weights != "none")

        if not goes_backward(frame.flow, node, parts=parts, given=given, trains=trains):
            return False
        return not any(self._plays_network(one, frame) for one in _names_of(node, frame.flow))

    def _plays_network(self, one: Definition, frame: Frame) -> bool:
        """Whether a name is used as a network: then a backward goes through what its methods give."""
        used = self._evaluator.role(one.key, frame.function)
        return used is not None and used.kind == "module"

    def all_given(self, node: Any, frame: Frame) -> Value:
        """What the arguments of a call have in common: the graph of any."""
        values = self._each_given(node, frame)
        with_graph = [one for one in values if one.graph]
        if with_graph:
            return together(with_graph)
        tensors = [one for one in values if one.kind in ("tensor", "parameter")]
        return tensors[0] if tensors else UNKNOWN

    def _each_given(self, node: Any, frame: Frame) -> list[Value]:
        given = arguments(node) if isinstance(node, ast.Call) else ()
        return [self._flat(self._evaluator.value_of(one, frame)) for one in given]

    def _flat(self, value: Value) -> Value:
        """A value, or what is in it where it is a list of values."""
        if value.kind in ("tuple", "list", "dict") and not value.graph:
            element = self._evaluator.element(value.but(parts=value.parts if value.kind == "tuple" else None))
            return element if element.kind not in ("list", "dict", "tuple") else UNKNOWN
        return value

    def entered_context(self, value: Value) -> Value:
        """What `with … as x` binds."""
        method = self._evaluator.method(value.ref, "__enter__") if value.kind == "object" else None
        if method is not None:
            return self._evaluator.returned(self._evaluator.root(method))
        if value.kind == "context":
            return value.receiver if isinstance(value.receiver, Value) else UNKNOWN
        return value


def begun_by(text: Value) -> Value:
    """A text that begins as another one does, which may name a place: `"cuda:%d" % rank`."""
    begins = text.device == "cuda" or (isinstance(text.const, str) and text.const.startswith("cuda"))
    return TEXT.but(device="cuda") if text.kind == "text" and begins else TEXT


def gives_pair(evaluator: Evaluating, row: Row, node: ast.Call, frame: Frame, is_method: bool) -> bool:
    """Whether a call gives values and indices: `x.sort()` does, `x.max(1)` or `torch.max(x, 1)` with a dimension, and not of all values
    or of two tensors element by element."""
    if row.gives != "pair or one":
        return row.gives == "pair"
    if not is_method and (not node.args or len(node.args) == 1):
        return any(one.arg == "dim" for one in node.keywords)
    where = argument(node, 0 if is_method else 1, "dim")
    if where is None:
        return bool(node.keywords)
    kind = evaluator.value_of(where, frame).kind
    return kind == "number" or (kind == "unknown" and is_method)


def _gives_one(row: Row, node: ast.Call, is_method: bool) -> bool:
    """Whether a reduction gives one number: `x.mean()`, and neither `x.mean(1)` nor `torch.mean(x, 1)`."""
    if row.size == "loss":
        return _reduction(node)
    dims = keyword(node, "dim") or keyword(node, "axis") or keyword(node, "keepdim")
    return dims is None and len(node.args) <= (0 if is_method else 1)


def _reduction(node: ast.Call) -> bool:
    wanted = keyword(node, "reduction")
    return not (isinstance(wanted, ast.Constant) and wanted.value == "none")


def _is_tool(full: str) -> bool:
    """Whether a class of a library prepares data: tokenizers and their like are no networks."""
    last = full.rpartition(".")[2]
    return any(word in last for word in ("Tokenizer", "Processor", "Config", "FeatureExtractor", "Scheduler"))


def _texts(node: Any) -> list[str]:
    """The names that an expression spells out: in one text, or in several."""
    several = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant)]
    return [name for one in several for name in str(one).replace(",", " ").split() if name.isidentifier()]


_BY_GIVEN = frozenset("tensor/pair/pair or one/receiver/gradients/text/element/elements/pairs".split("/"))
_CONSTANT: dict[str, Value] = {
    "number": NUMBER, "numbers": Value("list", receiver=NUMBER), "none": NONE, "array": Value("array", device="host"),
    "handle": Value("handle"),
}  # fmt: skip
# What is known by where it is made.
_MADE: dict[str, Value] = {
    "trainer": UNKNOWN, "settings": UNKNOWN, "unknown": UNKNOWN, "empty list": Value("list"), "dict": Value("dict", receiver=UNKNOWN),
    "parameter": Value("parameter", graph=Graph.LIVE), "loader": Value("loader", device="host"), "module": Value("module"),
    "optimizer": Value("optimizer"), "scheduler": Value("scheduler"), "scaler": Value("scaler"), "accelerator": Value("accelerator"),
    "logger": Value("logger"), "clock": Value("clock"), "loaded": Value("loaded"),
}  # fmt: skip


def _made_at(value: Value, site: frozenset[tuple[Any, Any]]) -> Value:
    """A value whose tensors with a graph one call has made, whatever makes them within."""
    parts = value.parts
    if value.kind == "tuple" and parts is not None:
        parts = tuple(_made_at(one, site) for one in parts)
    is_made = value.kind == "tensor" and value.graph
    return value.but(origins=site if is_made else value.origins, parts=parts)


def _names_of(made: Any, flow: Flow) -> Iterator[Definition]:
    """What binds the result of a call to names, also moved, or one of several: `net, head = Net(options).cuda(), Head()`."""
    while (above := flow.parents.get(made)) and called_on(flow.parents.get(above)) is made:
        made = flow.parents[above]
    yield from (one for one in flow.given.get(made, ()) if not one.path)
    if isinstance(above, ast.Tuple):
        yield from (one for one in flow.given.get(above, ()) if one.path == (above.elts.index(made),))
