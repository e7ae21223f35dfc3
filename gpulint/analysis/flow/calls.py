"""Calls, by what is called: imported names, values, builtins, and what nothing is known of."""

from __future__ import annotations

from gpulint.analysis.code import ir
from gpulint.analysis.code.outside import acts_at_once
from gpulint.analysis.file.entry import note_handed
from gpulint.analysis.file.gradmode import is_neutral_context, of_call
from gpulint.analysis.flow.evaluate import CRITERION_NAME, MODEL_NAME, PART_NAME
from gpulint.analysis.flow.methods import Methods, is_super
from gpulint.analysis.flow.torch_calls import CONVERTED
from gpulint.analysis.torch import frameworks
from gpulint.analysis.torch.backward import runs_backward
from gpulint.analysis.torch.names import (
    NUMERIC_SINKS,
    SINK_METHODS,
    TO_HOST,
)
from gpulint.analysis.values.arguments import Args, graphs, is_unreduced
from gpulint.analysis.values.values import (
    BOUNDED,
    DEVICE,
    FRESH,
    FROZEN,
    HOST,
    MAYBE,
    NUMBER,
    PLAIN,
    ROLE,
    UNKNOWN,
    Grad,
    Kind,
    Val,
    container,
    element,
)


class Calls(Methods):
    """Calls, by what is called."""

    def arguments(self, call: ir.Call) -> Args:
        positional = [self.eval(arg) for arg in call.args]
        keywords: dict[str, Val] = {}
        for position, (name, expr) in enumerate(call.keywords):
            keywords[name if name is not None else f"**{position}"] = self.eval(expr)
        return Args(positional, keywords)

    def call(self, expr: ir.Call) -> Val:
        func = expr.func
        qualified = self.qualified(func.path)
        if qualified is not None:
            return self.qualified_call(expr, qualified)
        if isinstance(func, ir.Name) and not self.is_local(func.id):
            known = self.file.free_name(self.function, func.id)
            if known.kind is Kind.UNKNOWN:
                special = self.builtin_call(expr, func.id)
                if special is not None:
                    return special
        if isinstance(func, ir.Attr):
            base = self.super_value() if is_super(func.base) else self.eval(func.base)
            return self.method_call(expr, func, base)
        callee = self.eval(func)
        args = self.arguments(expr)
        if expr.args or expr.keywords:
            callee = self.by_role(func, callee, args)
        return self.value_call(expr, callee, args)

    def by_role(self, func: ir.Expr, callee: Val, args: Args) -> Val:
        """A callable that the program names as its model, in a file that uses torch, is a module; one that it names
        as a part of a model is, where it is given a tensor."""
        path = func.path or ""
        own = "." not in path or (path.count(".") == 1 and path.startswith(f"{self.self_name}."))
        if callee.kind not in (Kind.UNKNOWN, Kind.SYMBOL) or not own or not self.file.uses_torch:
            return callee
        if path in self.file.function_names:
            return callee  # a function inside another, which is not followed yet
        tensors = any(value.is_tensor and not value.has(MAYBE) for value in args.positional[:1])
        if MODEL_NAME.search(path) or (tensors and PART_NAME.search(path)):
            return Val(Kind.MODULE, flags=ROLE)
        return callee

    def value_call(self, expr: ir.Call, callee: Val, args: Args) -> Val:
        """Call a value: a module, a function or class of the project, or something unknown."""
        if callee.kind is Kind.MODULE:
            return self.module_call(expr, callee, args)
        if callee.kind is Kind.FUNCTION:
            return self.function_call(expr, callee, args, None, None)
        if callee.kind is Kind.CLASS:
            return self.construct(expr, callee, args)
        if callee.kind is Kind.INSTANCE:
            return self.instance_call(expr, callee, args)
        if callee.kind is Kind.QUALIFIED:
            return self.known_call(expr, callee.ref, args)
        return self.unknown_call(expr, args)

    def super_value(self) -> Val:
        return (
            Val(Kind.INSTANCE, ref=self.cls.base()) if self.cls is not None and self.cls.base() else UNKNOWN
        )

    def enter_context(self, expr: ir.Expr, value: Val) -> None:
        """What entering a context does to grad: by `with`, or by a stack of contexts."""
        if value.kind is Kind.CONTEXT:
            self.state.grad = value.ref
        elif not self.is_neutral(expr, value):
            mode = self.context_mode(expr, value)
            if mode is not None:
                self.state.grad = mode

    def is_neutral(self, expr: ir.Expr, value: Val) -> bool:
        return is_neutral_context(expr) or value.kind in (Kind.HOST, Kind.MODULE, Kind.LOADER, Kind.CONTAINER)

    def context_mode(self, expr: ir.Expr, value: Val) -> Grad | None:
        """The grad mode under a context manager that is not torch's own; None where it changes nothing."""
        if value.kind is Kind.INSTANCE:
            return self.file.enter_mode(value.ref)
        qualified = self.qualified(expr.func.path) if isinstance(expr, ir.Call) else None
        if qualified is not None and (
            qualified in frameworks.NEUTRAL_CALLS
            or qualified.partition(".")[0] in frameworks.NEUTRAL_LIBRARIES
        ):
            return None
        return Grad.UNKNOWN

    # --- names from other modules --------------------------------------------------------------------------------

    def qualified_call(self, expr: ir.Call, qualified: str) -> Val:
        mode = of_call(qualified, expr, self.constants)
        if mode is not None:
            args = self.arguments(expr)
            if mode is Grad.UNKNOWN:
                self.summary.grad_in_training = _asked_for_its_mode(expr)
            if qualified.endswith("set_grad_enabled") and acts_at_once(self.stmt, expr):
                self.state.grad = mode
            if args.positional and args.positional[0].kind is Kind.FUNCTION:
                return args.positional[0]
            return Val(Kind.CONTEXT, ref=mode)
        imported = self.file.imported_value(qualified)
        args = self.arguments(expr)
        if imported is not None:
            return self.value_call(expr, imported, args)
        return self.known_call(expr, qualified, args)

    def known_call(self, expr: ir.Call, qualified: str, args: Args) -> Val:
        root, _, _ = qualified.partition(".")
        if root == "torch":
            return self.torch_call(expr, qualified, args)
        several = frameworks.parts(qualified)
        if several is not None:
            return self.module_and_more(qualified, *several)
        made = frameworks.constructor(qualified)
        if made == "module":
            owner = (
                qualified.split(".")[-2]
                if qualified.endswith(("from_pretrained", "from_config"))
                else qualified
            )
            thawing = frameworks.FROZEN_MAKERS.get(qualified)
            frozen = thawing is not None and expr.keyword(thawing) is None
            return Val(Kind.MODULE, flags=FROZEN if frozen else 0, ref=owner)
        if made is not None:
            return self.constructed(made, args)
        last = qualified.rsplit(".", 1)[-1]
        if qualified.startswith(frameworks.WEIGHTLESS_MAKERS) and last[:1].isupper():
            return Val(Kind.MODULE, flags=PLAIN, ref=qualified)
        if qualified in frameworks.FROZEN_PARTS:
            return Val(Kind.UNKNOWN, ref=qualified)
        if qualified in (
            "collections.deque",
            "collections.defaultdict",
            "collections.OrderedDict",
            "collections.Counter",
        ):
            return self.collection(expr, last, args)
        if qualified in frameworks.GRAPH_KEEPING and args.all():
            return self.combined(args.positional[:1] or args.all()[:1])
        if qualified == "functools.reduce":
            return element(args.positional[1]) if len(args.positional) > 1 else UNKNOWN
        if qualified in frameworks.MAKES_ARRAYS and args.first().kind is Kind.GRAPH:
            self.file.impossible |= args.first().tokens  # torch refuses that: there is no graph after all
        if root in frameworks.HOST_LIBRARIES or qualified in frameworks.DRAWING:
            for value in args.all():
                self.consume(value)
            return DEVICE if last == "make_grid" else HOST
        if last in ("deepcopy", "copy") and root == "copy":
            return args.first()
        if qualified == "functools.partial" and args.positional:
            return args.positional[0] if args.positional[0].kind is Kind.FUNCTION else UNKNOWN
        return self.unknown_call(expr, args)

    def module_and_more(self, qualified: str, count: int, listed: bool) -> Val:
        """What a library's loader gives: `model, preprocess = clip.load(name)`."""
        module = Val(Kind.MODULE, ref=qualified)
        rest = (UNKNOWN,) * (count - 1)
        return container(items=(container(module) if listed else module, *rest))

    # --- unknown -------------------------------------------------------------------------------------------------

    def unknown_method(self, expr: ir.Call, func: ir.Attr, base: Val) -> Val:
        name = func.attr
        args = self.arguments(expr)
        if func.path is not None:
            known = self.state.vars.get(func.path, UNKNOWN)  # `node.net` after `node.net.eval()`
            if known.kind is not Kind.MODULE:
                known = self.by_role(func, self.with_evidence(func.path, UNKNOWN), args)
            if known.kind is Kind.MODULE:
                return self.module_call(expr, known, args)
        hosts = args.all() and all(value.kind is Kind.HOST for value in args.all())
        if name == "forward" and hosts and not MODEL_NAME.search(func.base.path or ""):
            return HOST  # arrays or texts in: no module
        if name == "forward" and self.file.uses_torch and args.all():
            return self.module_call(expr, Val(Kind.MODULE, flags=ROLE), args)
        if name in frameworks.SURE_FORWARDS and self.state.grad is Grad.DISABLED and args.all():
            if MODEL_NAME.search(func.base.path or "") and self.file.uses_torch:
                return self.module_method(expr, func, Val(Kind.MODULE, flags=ROLE))
        if name in TO_HOST:
            self.consume(base)
            return CONVERTED if name in ("item", "tolist", "numpy") else HOST
        if name in ("detach", "argmax"):
            self.consume(base)
            return DEVICE
        if name in (
            "cpu",
            "to",
            "cuda",
            "float",
            "clone",
            "contiguous",
            "mean",
            "sum",
            "view",
            "reshape",
            "squeeze",
        ):
            return base
        if name == "scale" and len(args.positional) == 1:
            return args.positional[0]
        if name in ("prepare", "setup", "setup_module", "setup_dataloaders", "setup_optimizers"):
            return self.prepared(expr, args)
        if name in ("enter_context", "enter_async_context") and args.positional:
            self.enter_context(expr.args[0], args.positional[0])
            return UNKNOWN
        if (
            name in ("append", "appendleft", "extend", "insert", "add")
            and func.base.path is not None
            and len(args.positional) == (2 if name == "insert" else 1)
            and not args.keywords
            and not self.is_series(func.base)
        ):
            return self.container_add(expr, func, Val(Kind.CONTAINER, base.tokens), args)
        if name in ("step", "step_and_update_lr", "optimizer_step") and (
            "opt" in (func.base.path or "").lower()
            or func.base.path in self.evidence.optimizers
            or any(v.kind is Kind.OPTIMIZER for v in args.positional[:1])
        ):
            self.steps_with(expr, args)
            return HOST
        if name in SINK_METHODS or name in frameworks.SINKS:
            for value in args.all():
                self.consume(value)
            return UNKNOWN
        return self.unknown_call(expr, args, base)

    def is_series(self, base: ir.Expr) -> bool:
        """`run["train/loss"]` in a file that uses neptune: a series on its server, which takes numbers."""
        uses = any(full.partition(".")[0] == "neptune" for full in self.file.module.imports.values())
        return uses and isinstance(base, ir.Sub)

    def prepared(self, expr: ir.Call, args: Args) -> Val:
        """`accelerator.prepare(model, optimizer, loader)` gives back what it got."""
        if len(args.positional) == 1:
            return args.positional[0]
        return container(items=tuple(args.positional))

    def unknown_call(self, expr: ir.Call, args: Args, base: Val = UNKNOWN) -> Val:
        """Nothing is known of what is called: graphs handed to it go out of sight."""
        name = expr.method
        path = expr.func.path or ""
        if expr.keyword("return_tensors") is not None and not args.any_graph():
            return Val(Kind.UNKNOWN, flags=FRESH)
        if runs_backward(name) or self.steps_loss(name, args):
            for value in args.all():
                if value.tokens:
                    self.backward_event(expr, value, False, False, None)
            return HOST
        if args.any_graph() and (CRITERION_NAME.search(path) or path in self.file.loss_makers):
            result = self.combined([value for value in args.all() if graphs(value)])
            unshown = path not in self.file.loss_makers
            return self.loss_result(expr, result, unshown) if not is_unreduced(expr) else result
        note_handed(args.all(), self.state.grad, None)
        for value in args.all():
            self.escape(value)
            if value.kind is Kind.FUNCTION and name in ("apply", "map", "step"):
                self.function_call(expr, value, Args([], {}), None, None)
        if name == "map" and args.positional[1:]:
            return container(Val(Kind.UNKNOWN, args.tokens()))
        return Val(Kind.UNKNOWN, args.tokens() | base.tokens)

    def steps_loss(self, name: str, args: Args) -> bool:
        """`loss_scaler(loss, optimizer, …)`: whoever gets a loss and its optimizer runs the backward."""
        del name
        kinds = {value.kind for value in args.all()}
        return Kind.OPTIMIZER in kinds and any(
            graphs(value) or (value.kind is Kind.UNKNOWN and value.tokens) for value in args.positional[:1]
        )

    # --- builtins and collections --------------------------------------------------------------------------------

    def builtin_call(self, expr: ir.Call, name: str) -> Val | None:
        if name in NUMERIC_SINKS:
            args = self.arguments(expr)
            for value in args.all():
                self.consume(value)
            return (
                CONVERTED
                if name in ("float", "int", "round")
                and any(graphs(v) or v.kind is Kind.SYMBOL for v in args.all())
                else HOST
            )
        if name in (
            "list",
            "dict",
            "tuple",
            "set",
            "sorted",
            "reversed",
            "deque",
            "defaultdict",
            "OrderedDict",
        ):
            return self.collection(expr, name, self.arguments(expr))
        if name == "super":
            return self.super_value()
        if name in ("sum", "max", "min", "abs", "next", "iter", "pow"):
            return self.reduction(expr, name)
        if name in ("enumerate", "zip", "filter", "map"):
            args = self.arguments(expr)
            if name == "filter" or not args.positional:
                return UNKNOWN
            if name == "map":
                return self.mapped(expr, args)
            return container(self.iterated(expr))
        if name in (
            "range",
            "any",
            "all",
            "open",
            "ord",
            "chr",
            "dir",
            "vars",
            "callable",
            "input",
            "divmod",
            "issubclass",
        ):
            self.arguments(expr)
            return HOST
        return None

    def mapped(self, expr: ir.Call, args: Args) -> Val:
        func = args.positional[0]
        if len(args.positional) > 1 and func.kind is Kind.FUNCTION:
            inner = Args([element(value) for value in args.positional[1:]], {})
            return container(self.function_call(expr, func, inner, None, None))
        return container(Val(Kind.UNKNOWN, args.tokens()))

    def reduction(self, expr: ir.Call, name: str) -> Val:
        args = self.arguments(expr)
        if name in ("sum", "max", "min") and len(args.positional) >= 1:
            first = args.positional[0]
            if first.kind is Kind.CONTAINER and first.items is None:
                return element(first).with_tokens(first.tokens)
            if first.kind is Kind.CONTAINER and first.items:
                total = first.items[0]
                for item in first.items[1:]:
                    total = self.arithmetic("+", [total, item])
                return total.with_tokens(first.tokens)
            if name == "sum":
                return element(first)
            result = first
            for other in args.positional[1:]:
                result = self.arithmetic("+", [result, other])
            return result
        first = args.first()
        return element(first) if name == "next" else first

    def collection(self, expr: ir.Call, name: str, args: Args) -> Val:
        flags = (
            BOUNDED
            if expr.keyword("maxlen") is not None or (name == "deque" and len(args.positional) > 1)
            else 0
        )
        if name == "defaultdict":
            makes_number = bool(expr.args) and expr.args[0].path in ("int", "float")
            return container(NUMBER if makes_number else container())
        if name == "dict" and args.keywords:
            return container(items=tuple(args.keywords.values()))
        if args.positional:
            first = args.positional[0]
            return container(element(first) if first.kind is not Kind.UNKNOWN else None, first.items, flags)
        return container(flags=flags)


def _asked_for_its_mode(call: ir.Call) -> str:
    """`self.net` of `torch.set_grad_enabled(self.net.training)`."""
    argument = call.argument(0, "mode")
    asked = isinstance(argument, ir.Attr) and argument.attr == "training"
    return (argument.base.path or "") if asked else ""  # type: ignore[union-attr]
