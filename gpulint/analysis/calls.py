"""What a call does to values: torch functions, tensor and container methods, modules, backward, the file's own functions."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpulint.analysis import frameworks, ir
from gpulint.analysis.evaluate import CRITERION_NAME, MODEL_NAME, Evaluator
from gpulint.analysis.evidence import runs_backward
from gpulint.analysis.facts import Backward, Forward, Keep
from gpulint.analysis.gradmode import of_call
from gpulint.analysis.names import (
    KEEPS_GRAPH,
    NUMERIC_SINKS,
    PAIRS,
    REDUCTIONS,
    SINK_METHODS,
    TO_DEVICE,
    TO_HOST,
    is_loss_function,
)
from gpulint.analysis.summaries import retokened
from gpulint.analysis.values import (
    BOUNDED,
    CHECKPOINTED,
    CRITERION,
    DENSE,
    DEVICE,
    EVAL,
    FROZEN,
    HOST,
    LARGE,
    LOADER,
    LOSS,
    MAYBE,
    NAMED,
    NO_TOKENS,
    OPTIMIZER,
    OUTPUT,
    PHASED,
    ROLE,
    SCALAR,
    UNKNOWN,
    UNSURE_GRAD,
    VIEW,
    Grad,
    Holder,
    Kind,
    ParamToken,
    Site,
    Tokens,
    Val,
    container,
    detached,
    element,
    join,
)


@dataclass(slots=True)
class Args:
    """Evaluated arguments of a call."""

    positional: list[Val]
    keywords: dict[str, Val]

    def all(self) -> list[Val]:
        return [*self.positional, *self.keywords.values()]

    def first(self) -> Val:
        return self.positional[0] if self.positional else next(iter(self.keywords.values()), UNKNOWN)

    def tokens(self) -> Tokens:
        merged: Tokens = NO_TOKENS
        for value in self.all():
            merged |= value.tokens
        return merged

    def any_graph(self) -> bool:
        return any(_graphs(value) for value in self.all())


class Calls(Evaluator):
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
            base = self.super_value() if _is_super(func.base) else self.eval(func.base)
            return self.method_call(expr, func, base)
        callee = self.eval(func)
        if expr.args or expr.keywords:
            callee = self.by_role(func, callee)
        return self.value_call(expr, callee, self.arguments(expr))

    def by_role(self, func: ir.Expr, callee: Val) -> Val:
        """A callable that the program names as its model, in a file that uses torch, is a module."""
        path = func.path or ""
        own = "." not in path or (path.count(".") == 1 and path.startswith(f"{self.self_name}."))
        if callee.kind in (Kind.UNKNOWN, Kind.SYMBOL) and own and MODEL_NAME.search(path) and self.file.uses_torch:
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

    # --- names from other modules --------------------------------------------------------------------------------

    def qualified_call(self, expr: ir.Call, qualified: str) -> Val:
        mode = of_call(qualified, expr)
        if mode is not None:
            args = self.arguments(expr)
            if qualified.endswith("set_grad_enabled") and self.is_statement(expr):
                self.state.grad = mode
            if args.positional and args.positional[0].kind is Kind.FUNCTION:
                return args.positional[0]
            return Val(Kind.CONTEXT, ref=mode)
        self.hot_call(expr, qualified)
        imported = self.file.imported_value(qualified)
        args = self.arguments(expr)
        if imported is not None:
            return self.value_call(expr, imported, args)
        return self.known_call(expr, qualified, args)

    def known_call(self, expr: ir.Call, qualified: str, args: Args) -> Val:
        root, _, _ = qualified.partition(".")
        if root == "torch":
            return self.torch_call(expr, qualified, args)
        made = frameworks.constructor(qualified)
        if made == "module":
            owner = qualified.split(".")[-2] if qualified.endswith(("from_pretrained", "from_config")) else qualified
            return Val(Kind.MODULE, ref=owner)
        if made is not None:
            return self.constructed(made, args)
        last = qualified.rsplit(".", 1)[-1]
        if qualified in (
            "collections.deque",
            "collections.defaultdict",
            "collections.OrderedDict",
            "collections.Counter",
        ):
            return self.collection(expr, last, args)
        if root in frameworks.HOST_LIBRARIES:
            for value in args.all():
                self.consume(value)
            return HOST
        if last in ("deepcopy", "copy") and root == "copy":
            return args.first()
        if qualified == "functools.partial" and args.positional:
            return args.positional[0] if args.positional[0].kind is Kind.FUNCTION else UNKNOWN
        return self.unknown_call(expr, args)

    def constructed(self, made: str, args: Args) -> Val:
        if made == "wrap":
            return args.first() if args.first().kind is Kind.MODULE else Val(Kind.MODULE)
        return {"optimizer": OPTIMIZER, "loader": LOADER}.get(made, UNKNOWN)

    def torch_call(self, expr: ir.Call, qualified: str, args: Args) -> Val:
        last = qualified.rsplit(".", 1)[-1]
        if qualified.startswith("torch.nn.") and not qualified.startswith(
            ("torch.nn.functional.", "torch.nn.utils.", "torch.nn.init.")
        ):
            if last[:1].isupper():
                return self.torch_class(qualified, last, args)
        if qualified.startswith("torch.optim.") and last[:1].isupper():
            if "lr_scheduler" not in qualified and "swa_utils" not in qualified:
                return OPTIMIZER
            return Val(Kind.MODULE) if last == "AveragedModel" else HOST
        if last in ("DataLoader", "DistributedSampler") and ".data" in qualified:
            return LOADER
        if qualified.startswith("torch.distributions."):
            return Val(Kind.DISTRIBUTION, args.tokens(), MAYBE if not args.any_graph() else 0)
        if qualified in ("torch.autograd.grad", "torch.autograd.backward"):
            return self.autograd_call(expr, qualified, args)
        if last == "Variable":
            return args.first()
        if qualified in ("torch.compile", "torch.jit.script", "torch.jit.trace") or qualified.endswith(
            "fully_shard"
        ):
            return args.first()
        if qualified.endswith("checkpoint.checkpoint") or qualified.endswith("checkpoint_sequential"):
            return self.checkpoint_call(expr, args)
        if qualified in ("torch.load", "torch.save") or qualified.startswith(
            ("torch.cuda.", "torch.backends.", "torch.hub.")
        ):
            return Val(Kind.MODULE) if qualified == "torch.hub.load" else UNKNOWN if last == "load" else HOST
        if qualified.startswith("torch.distributed."):
            return HOST
        return self.tensor_function(expr, last, args)

    def torch_class(self, qualified: str, last: str, args: Args) -> Val:
        if last in ("Parameter", "UninitializedParameter", "Buffer"):
            return Val(Kind.GRAPH, frozenset({self.file.leaf}), MAYBE)
        if last in ("DataParallel", "DistributedDataParallel") and args.positional:
            first = args.positional[0]
            return first if first.kind is Kind.MODULE else Val(Kind.MODULE)
        return Val(Kind.MODULE, flags=CRITERION if is_loss_function(qualified) else 0, ref=last)

    def tensor_function(self, expr: ir.Call, name: str, args: Args) -> Val:
        """`torch.f(x, …)` or `x.f(…)` by name; `args` includes the tensor itself."""
        values = args.all()
        out = self.eval(keyword) if (keyword := expr.keyword("out")) is not None else None
        if name == "numpy" and values[0].kind is Kind.GRAPH:
            self.file.impossible |= values[0].tokens  # torch refuses that: there is no graph after all
        if name in TO_HOST:
            for value in values:
                self.consume(value)
            return (
                CONVERTED
                if any(value.kind is Kind.GRAPH or value.kind is Kind.SYMBOL for value in values)
                else HOST
            )
        if name in TO_DEVICE:
            for value in values:
                self.consume(value)
            requires = expr.keyword("requires_grad")
            if isinstance(requires, ir.Const) and requires.value is True:
                return Val(Kind.GRAPH, frozenset({self.file.leaf}), MAYBE)
            return DEVICE
        result = self.combined(values)
        if out is not None:
            return out
        if name in PAIRS and result.kind in (Kind.GRAPH, Kind.DEVICE, Kind.SYMBOL):
            by_dimension = expr.keyword("dim") is not None or expr.keyword("k") is not None
            if by_dimension or any(value.kind in (Kind.NUMBER, Kind.HOST) for value in args.positional[1:2]):
                return container(items=(result, DEVICE))
            return result.without_flags(LARGE | VIEW)
        if name in REDUCTIONS or name.endswith("_loss") or is_loss_function(f"torch.{name}"):
            small = result.without_flags(LARGE | VIEW | OUTPUT)
            if is_loss_function(f"torch.{name}") and not _is_unreduced(expr):
                return self.loss_result(expr, small)
            has_dim = expr.keyword("dim") is not None or any(v.kind is Kind.NUMBER for v in args.positional[1:])
            if has_dim and name in ("mean", "amax"):
                return result.without_flags(VIEW)
            return small if has_dim else small.with_flags(SCALAR) if small.kind is Kind.GRAPH else small
        if name in ("chunk", "split", "unbind", "tensor_split", "meshgrid"):
            return container(result)
        if name in ("interpolate", "upsample", "pixel_shuffle") and result.kind in (Kind.GRAPH, Kind.DEVICE):
            return result.with_flags(DENSE)
        if name in ("stack", "cat", "concat", "clone", "contiguous", "cpu"):
            return result.without_flags(VIEW)
        return result.without_flags(SCALAR) if name in ("exp", "log") else result

    def combined(self, values: list[Val]) -> Val:
        """The value of a torch operation over these operands, grad mode taken into account."""
        tokens: Tokens = NO_TOKENS
        graph: Val | None = None
        kinds: set[Kind] = set()
        flags = 0
        for value in values:
            flat = element(value) if value.kind is Kind.CONTAINER else value
            tokens |= value.tokens
            kinds.add(flat.kind)
            flags |= flat.flags & (LARGE | CHECKPOINTED | DENSE)
            if flat.kind is Kind.GRAPH and (graph is None or (graph.has(MAYBE) and not flat.has(MAYBE))):
                graph = flat
        if graph is not None:
            if self.state.grad is Grad.DISABLED:
                return detached(graph)
            extra = UNSURE_GRAD if self.state.grad is Grad.UNKNOWN else 0
            # A torch operation on it proves a tensor; only what was looked up by name may still be detached.
            gone = VIEW | OUTPUT if graph.has(NAMED) else VIEW | OUTPUT | MAYBE
            return Val(Kind.GRAPH, tokens, (graph.flags & ~gone) | flags | extra)
        if Kind.SYMBOL in kinds and Kind.MODULE not in kinds:
            return Val(Kind.SYMBOL, tokens)
        if Kind.DEVICE in kinds and kinds <= {Kind.DEVICE, Kind.HOST, Kind.NUMBER, Kind.CONTAINER}:
            return Val(Kind.DEVICE, flags=flags & LARGE)
        if self.state.grad is Grad.DISABLED and kinds & {Kind.UNKNOWN, Kind.SYMBOL, Kind.DEVICE}:
            return Val(Kind.UNKNOWN, tokens)
        return Val(Kind.UNKNOWN, tokens)

    def loss_result(self, expr: ir.Call, value: Val) -> Val:
        if value.kind is Kind.GRAPH:
            return replace(value, flags=(value.flags | SCALAR | LOSS) & ~(LARGE | VIEW | OUTPUT))
        if value.kind is Kind.DEVICE:
            return Val(Kind.DEVICE, flags=SCALAR | LOSS)
        return value

    # --- modules -------------------------------------------------------------------------------------------------

    def module_call(self, expr: ir.Call, module: Val, args: Args) -> Val:
        """Run a module. With grad enabled the result has a graph; a criterion's has one if its input has."""
        if module.has(CRITERION):
            return (
                self.loss_result(expr, self.combined(args.all()))
                if not _is_unreduced(expr)
                else self.combined(args.all())
            )
        info = module.ref
        forward = info.method("forward") if info is not None and not isinstance(info, str) else None
        if forward is not None:
            return self.own_module_call(expr, module, forward, args)
        return self.graph_from(expr, module, args)

    def own_module_call(self, expr: ir.Call, module: Val, forward: ir.Function, args: Args) -> Val:
        """A module whose class is in the project: the shape of its result is known."""
        shape = self.function_call(expr, Val(Kind.FUNCTION, ref=forward), args, module, None, forward=True)
        made = self.graph_from(expr, module, args)
        if self.record and (event := self.events.forwards.get(id(expr.node))) is not None:
            event.dense |= shape.has(DENSE)
        if made.kind is not Kind.GRAPH:
            return detached(shape) if shape.kind in (Kind.GRAPH, Kind.CONTAINER) else made
        site = self.file.site(expr.node, "forward", self.function, expr.func.path)
        site.inner = frozenset(s for s in shape.sites if s.function is not self.function and s is not site)
        return _shaped(retokened(shape, site.inner, site), made)

    def graph_from(self, expr: ir.Call, module: Val, args: Args) -> Val:
        frozen = module.has(FROZEN)
        maybe = module.flags & MAYBE
        if self.state.grad is Grad.DISABLED:
            self.forward_event(expr, module, None)
            return Val(Kind.DEVICE, flags=LARGE | OUTPUT | maybe | (DENSE if _is_dense(module) else 0))
        if frozen and not args.any_graph():
            self.forward_event(expr, module, None)
            return Val(Kind.UNKNOWN, args.tokens())
        site = self.site(expr, "forward", expr.func.path)
        self.carried(expr, args, frozenset({site}))
        self.make_fresh(site)
        site.known = module.ref is not None
        self.forward_event(expr, module, site)
        dense = DENSE if _is_dense(module) else 0
        flags = LARGE | OUTPUT | dense | maybe | (UNSURE_GRAD if self.state.grad is Grad.UNKNOWN else 0)
        if module.has(EVAL):
            self.file.evaluating.add(site)
        path = expr.func.path or ""
        if path.startswith(f"{self.self_name}."):
            path = "self." + path.partition(".")[2]
        self.summary.forward_paths.add(path)
        if module.ref in ("LSTM", "GRU", "RNN"):
            part = Val(Kind.GRAPH, args.tokens() | {site}, flags & ~OUTPUT)
            state = container(items=(part, part)) if module.ref == "LSTM" else part
            return container(items=(part, state))
        # What one forward makes belongs to its graph, and so does what went in.
        return Val(Kind.GRAPH, args.tokens() | {site}, flags)

    def make_fresh(self, site: Site) -> None:
        self.state.fresh(site)

    def site(self, expr: ir.Call, what: str, path: str | None) -> Site:
        site = self.file.site(expr.node, what, self.function, path)
        site.depth = len(self.loops)
        return site

    def checkpoint_call(self, expr: ir.Call, args: Args) -> Val:
        module = args.first()
        if module.kind is not Kind.MODULE or self.state.grad is Grad.DISABLED:
            return self.combined(args.positional[1:]) if args.positional else UNKNOWN
        return self.graph_from(expr, module, args).with_flags(CHECKPOINTED)

    def forward_event(self, expr: ir.Call, module: Val, site: Site | None) -> Forward | None:
        if self.loops:
            self.loops[-1].forwards += 1
        self.summary.forwards += not self.loops
        if not self.record or self.stmt is None:
            return None
        event = Forward(
            self.function, self.stmt, expr, expr.func.path or "", site, self.state.grad, module.has(EVAL),
            tuple(self.loops), not module.has(MAYBE), guarded=bool(self.guards), phased=module.has(PHASED),
        )  # fmt: skip
        event.dense = _is_dense(module)
        event.by_role = module.has(ROLE)
        self.events.forwards[id(expr.node)] = event
        return event

    # --- backward ------------------------------------------------------------------------------------------------

    def autograd_call(self, expr: ir.Call, qualified: str, args: Args) -> Val:
        outputs = (
            args.positional[0]
            if args.positional
            else args.keywords.get("outputs", args.keywords.get("tensors", UNKNOWN))
        )
        value = element(outputs) if outputs.kind is Kind.CONTAINER else outputs
        value = value.with_tokens(outputs.tokens)
        create = _is_true(expr.keyword("create_graph"))
        retain = _is_true(expr.keyword("retain_graph")) or create
        self.backward_event(
            expr, value, retain, create, outputs_path(expr), grad_only=qualified.endswith("grad")
        )
        self.summary.autograd_grad |= qualified.endswith("grad")
        if not qualified.endswith("grad"):
            return HOST
        return container(Val(Kind.GRAPH, value.tokens, MAYBE) if create else DEVICE)

    def backward_event(
        self, expr: ir.Call, value: Val, retain: bool, create: bool, path: str | None, grad_only: bool = False
    ) -> None:
        if self.loops:
            self.loops[-1].backwards += 1
        self.summary.backwards += 1
        self.summary.direct_backwards += not self.loops
        if self.record and self.stmt is not None:
            self.events.backwards[id(expr.node)] = Backward(
                self.function, self.stmt, expr, tuple(self.loops), value.tokens, retain, create,
                expr.keyword("retain_graph") is not None, path, value, grad_only,
                training_only=any(_asks_for_training(guard) for guard in self.guards),
                every_k=any(_is_modulo(guard) for guard in self.guards),
            )  # fmt: skip
        for token in value.tokens:
            if isinstance(token, ParamToken) and token.function is self.function:
                self.summary.frees.add(token.name)
        self.free(value, retain)

    def backward_method(self, expr: ir.Call, func: ir.Attr, base: Val) -> Val:
        """`loss.backward()`, or `engine.backward(loss)` where the owner is no tensor."""
        args = self.arguments(expr)
        create = _is_true(expr.keyword("create_graph"))
        retain = _is_true(expr.keyword("retain_graph")) or create
        first = args.positional[0] if args.positional else args.keywords.get("loss")
        engine = base.kind not in (Kind.GRAPH, Kind.DEVICE) and first is not None
        if engine and first is not None and base.tokens and not _graphs(first):
            engine = False  # loss.backward(gradient)
        if engine:
            path = expr.args[0].path if expr.args else None
            graphs = [value for value in args.all() if value.tokens]
            for value in graphs or [UNKNOWN]:
                self.backward_event(expr, value, retain, create, path)
        else:
            self.backward_event(expr, base, retain, create, func.base.path)
        return HOST

    # --- methods -------------------------------------------------------------------------------------------------

    def method_call(self, expr: ir.Call, func: ir.Attr, base: Val) -> Val:
        name = func.attr
        kind = base.kind
        if name == "backward" and not (kind is Kind.INSTANCE and self.file.method(base.ref, name)):
            return self.backward_method(expr, func, base)
        if name in ("eval", "train") and kind in (Kind.SYMBOL, Kind.UNKNOWN) and not expr.args and self.file.uses_torch:
            return self.module_method(expr, func, Val(Kind.MODULE))
        if kind in (Kind.GRAPH, Kind.DEVICE, Kind.SYMBOL):
            found = self.tensor_method(expr, func, base)
            if found is not None:
                return found
        if kind is Kind.CONTAINER:
            return self.container_method(expr, func, base)
        if kind is Kind.MODULE:
            return self.module_method(expr, func, base)
        if kind is Kind.INSTANCE:
            return self.instance_method(expr, func, base)
        if kind is Kind.OPTIMIZER:
            return self.optimizer_method(expr, func, base)
        if kind is Kind.DISTRIBUTION:
            return self.distribution_method(expr, name, base)
        if kind is Kind.CLASS:
            method = self.file.method(base.ref, name)
            if method is not None:
                return self.function_call(
                    expr, Val(Kind.FUNCTION, ref=method), self.arguments(expr), None, None
                )
        if kind is Kind.HOST:
            self.arguments(expr)
            return HOST
        return self.unknown_method(expr, func, base)

    def tensor_method(self, expr: ir.Call, func: ir.Attr, base: Val) -> Val | None:
        name = func.attr
        if name == "requires_grad_" and base.kind is Kind.DEVICE:
            return Val(Kind.GRAPH, frozenset({self.file.leaf}), MAYBE)
        if name in ("detach_", "requires_grad_") and func.base.path is not None:
            if name == "detach_":
                self.consume(base)
                self.state.assign(func.base.path, detached(base), self.state.born_at(func.base.path) or 0)
                return detached(base)
            return base
        if name in ("detach", "data"):
            self.consume(base)
            return detached(base)
        if base.has(OUTPUT) and name in ("values", "items", "get", "pop", "keys", "to_tuple"):
            self.arguments(expr)
            return container(Val(base.kind, base.tokens, base.flags | MAYBE))
        if name in TO_HOST or name in TO_DEVICE or name in KEEPS_GRAPH or name in PAIRS or name in REDUCTIONS:
            args = self.arguments(expr)
            if name == "numpy" and base.kind is Kind.SYMBOL:
                return CONVERTED
            values = Args([base, *args.positional], args.keywords)
            if name == "to" or name == "cpu":
                return self.moved(base, expr)
            return self.tensor_function(expr, name, values)
        if name == "register_hook":
            self.arguments(expr)
            return UNKNOWN
        if name.endswith("_") and not name.startswith("_"):
            args = self.arguments(expr)
            result = self.combined([base, *args.all()])
            if func.base.path is not None and result.kind is Kind.GRAPH and base.kind is Kind.DEVICE:
                self.state.vars[func.base.path] = result
            return result
        return None

    def moved(self, base: Val, expr: ir.Call) -> Val:
        """`.cpu()` and `.to(…)` keep the graph; without one, `.cpu()` lets the device go."""
        to_cpu = expr.method == "cpu" or any(
            isinstance(arg, ir.Const) and arg.value == "cpu" for arg in expr.args
        )
        if base.kind is Kind.DEVICE and to_cpu:
            return HOST
        return base.without_flags(VIEW) if base.kind is Kind.DEVICE else base

    def container_method(self, expr: ir.Call, func: ir.Attr, base: Val) -> Val:
        args = self.arguments(expr)
        name = func.attr
        if name in (
            "append",
            "appendleft",
            "add",
            "extend",
            "extendleft",
            "insert",
            "put",
            "push",
            "setdefault",
            "update",
        ):
            return self.container_add(expr, func, base, args)
        if name in ("items", "enumerate"):
            return container(container(items=(UNKNOWN, element(base))))
        if name in ("values", "copy", "keys"):
            return base if name != "keys" else UNKNOWN
        if name in ("pop", "popleft", "get", "__getitem__", "popitem"):
            return element(base)
        if name in ("mean", "sum", "max", "min", "item"):
            return UNKNOWN
        return Val(Kind.UNKNOWN, base.tokens)

    def container_add(self, expr: ir.Call, func: ir.Attr, base: Val, args: Args) -> Val:
        name = func.attr
        if not args.all():
            return UNKNOWN
        if name in ("insert", "setdefault") and len(args.positional) > 1:
            value = args.positional[1]
            leaf = expr.args[1]
        elif args.positional:
            value, leaf = args.positional[-1], expr.args[-1]
        else:
            value, leaf = args.first(), expr.keywords[0][1]
        if name in ("extend", "extendleft", "update"):
            value = value if value.kind is Kind.CONTAINER else container(element(value))
            if value.kind is Kind.CONTAINER and isinstance(leaf, ir.Name) and value.elem is None:
                value = container(UNKNOWN)
        path = func.base.path
        if path is None and isinstance(func.base, ir.Sub):
            path = func.base.base.path  # `logs[name].append(x)` is kept by `logs`
        how = {
            "appendleft": "append",
            "add": "append",
            "extendleft": "extend",
            "put": "append",
            "push": "append",
        }.get(name, name)
        if path is not None:
            if name == "update" and base.items is not None:
                return HOST
            token = self.held(expr, how, path, value, (leaf,), in_container=True, bounded=base.has(BOUNDED))
            stored = (
                value.elem if name in ("extend", "extendleft", "update") and value.elem is not None else value
            )
            if token is not None:
                stored = stored.with_tokens((token,))
            inner = isinstance(func.base, ir.Sub) and func.base.path is None
            self.add_to(path, container() if inner else base, container(stored) if inner else stored)
        return HOST

    def add_to(self, path: str, base: Val, stored: Val) -> None:
        elem = stored if base.elem is None else _weak_join(base.elem, stored)
        updated = container(elem, flags=base.flags & BOUNDED)
        self.state.vars[path] = updated
        self.state.born.setdefault(
            path, self.state.born_at(path) if self.state.born_at(path) is not None else -1
        )  # type: ignore[arg-type]
        if "." in path or "[" in path:
            self.state.dotted.add(path)
        self.store_attribute(path, updated)

    def module_method(self, expr: ir.Call, func: ir.Attr, base: Val) -> Val:
        name = func.attr
        if name in ("eval", "train"):
            mode = name == "eval" or bool(
                expr.args and isinstance(expr.args[0], ir.Const) and expr.args[0].value is False
            )
            unknown = bool(expr.args) and not isinstance(expr.args[0], ir.Const)
            value = base.with_flags(EVAL) if mode and not unknown else base.without_flags(EVAL)
            value = value.with_flags(PHASED) if unknown else value.without_flags(PHASED)
            self.set_mode(func.base.path, value, mode and not unknown)
            return value
        args = self.arguments(expr)
        if name in (
            "to",
            "cuda",
            "cpu",
            "half",
            "float",
            "double",
            "bfloat16",
            "type",
            "apply",
            "requires_grad_",
            "compile",
            "share_memory",
        ):
            frozen = (
                name == "requires_grad_"
                and expr.args
                and isinstance(expr.args[0], ir.Const)
                and expr.args[0].value is False
            )
            value = base.with_flags(FROZEN) if frozen else base
            if frozen and func.base.path is not None and func.base.path in self.state.vars:
                self.state.vars[func.base.path] = value
            return value
        if name in ("forward", "__call__"):
            return self.module_call(expr, base, args)
        if name in (
            "parameters",
            "named_parameters",
            "state_dict",
            "load_state_dict",
            "zero_grad",
            "modules",
            "buffers",
        ):
            return UNKNOWN
        if base.ref is not None and not isinstance(base.ref, str):
            method = base.ref.method(name)
            if method is not None:
                return self.function_call(expr, Val(Kind.FUNCTION, ref=method), args, base, func.base.path)
        if name == "step":  # an engine: model and optimizer in one
            self.optimizer_step()
            return HOST
        if name in frameworks.NO_GRAD_METHODS:
            return Val(Kind.DEVICE, flags=MAYBE)
        if name in frameworks.SUBMODULES:
            return self.graph_from(expr, base, args)
        if name in frameworks.FORWARD_METHODS:
            return self.graph_from(expr, base.with_flags(MAYBE), args)
        return self.unknown_call(expr, args)

    def set_mode(self, path: str | None, value: Val, evaluating: bool) -> None:
        if evaluating:
            self.facts.calls_eval = True
        if path is None:
            return
        born = self.state.born_at(path)
        self.state.assign(path, value, born if born is not None else -1)

    def optimizer_method(self, expr: ir.Call, func: ir.Attr, base: Val) -> Val:
        args = self.arguments(expr)
        if func.attr == "step":
            self.optimizer_step()
            for value in args.all():
                if value.kind is Kind.FUNCTION:
                    return self.function_call(expr, value, Args([], {}), None, None)
        return HOST if func.attr != "minimize" else self.unknown_call(expr, args)

    def optimizer_step(self) -> None:
        if self.loops:
            self.loops[-1].steps += 1
        self.summary.steps += not self.loops

    def distribution_method(self, expr: ir.Call, name: str, base: Val) -> Val:
        args = self.arguments(expr)
        if name in ("sample", "mode"):
            return DEVICE
        if self.state.grad is Grad.DISABLED:
            return DEVICE
        if name in ("rsample", "log_prob", "entropy", "mean", "kl_divergence"):
            if base.has(MAYBE):
                return Val(Kind.UNKNOWN, base.tokens | args.tokens())
            return Val(Kind.GRAPH, base.tokens | args.tokens())
        return Val(Kind.UNKNOWN, base.tokens)

    def instance_method(self, expr: ir.Call, func: ir.Attr, base: Val) -> Val:
        name = func.attr
        method = self.file.method(base.ref, name)
        if method is not None:
            return self.function_call(
                expr, Val(Kind.FUNCTION, ref=method), self.arguments(expr), base, func.base.path
            )
        if name in ("eval", "train") and base.ref.is_module:
            self.arguments(expr)
            evaluating = name == "eval"
            value = base.with_flags(EVAL) if evaluating else base.without_flags(EVAL)
            self.set_mode(func.base.path, value, evaluating)
            return value
        stored = self.attribute_of(base, func)
        if stored.kind in (Kind.MODULE, Kind.FUNCTION, Kind.CLASS, Kind.INSTANCE):
            return self.value_call(expr, stored, self.arguments(expr))
        if base.ref.is_module and name in frameworks.FORWARD_METHODS | {"forward", "to", "cuda", "cpu"}:
            return self.module_method(expr, func, Val(Kind.MODULE, flags=base.flags & EVAL, ref=base.ref))
        if base.ref.is_hf_trainer and name in frameworks.HF_TRAINER_KEEPS:
            return self.kept_by_framework(expr, func, frameworks.HF_TRAINER_KEEPS[name])
        return self.unknown_method(expr, func, base)

    def kept_by_framework(self, expr: ir.Call, func: ir.Attr, holder: str) -> Val:
        """A library's method that keeps what it is given, as it is given."""
        args = self.arguments(expr)
        if self.stmt is not None and args.positional and func.base.path is not None:
            keep = Keep(self.function, func.attr, holder, "self", "append", self.stmt, filename="<library>")
            self.held(expr, "call", f"{func.base.path}.{holder}", args.positional[0], expr.args[:1], True, False, keep)
        return HOST

    def instance_call(self, expr: ir.Call, base: Val, args: Args) -> Val:
        info = base.ref
        method = info.method("__call__")
        if method is not None:
            return self.function_call(expr, Val(Kind.FUNCTION, ref=method), args, base, expr.func.path)
        if info.is_module:
            return self.module_call(expr, Val(Kind.MODULE, flags=base.flags & EVAL, ref=info), args)
        return self.unknown_call(expr, args)

    # --- unknown -------------------------------------------------------------------------------------------------

    def unknown_method(self, expr: ir.Call, func: ir.Attr, base: Val) -> Val:
        name = func.attr
        args = self.arguments(expr)
        if func.path is not None:
            known = self.by_role(func, self.with_evidence(func.path, UNKNOWN))
            if known.kind is Kind.MODULE:
                return self.module_call(expr, known, args)
        if name == "forward" and self.file.uses_torch and args.all():
            return self.module_call(expr, Val(Kind.MODULE), args)
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
            if args.positional[0].kind is Kind.CONTEXT:
                self.state.grad = args.positional[0].ref
            return UNKNOWN
        if (
            name in ("append", "appendleft", "extend", "insert", "add")
            and func.base.path is not None
            and args.positional
        ):
            return self.container_add(expr, func, Val(Kind.CONTAINER, base.tokens), args)
        if name in ("step", "step_and_update_lr", "optimizer_step") and (
            "opt" in (func.base.path or "").lower() or any(v.kind is Kind.OPTIMIZER for v in args.positional[:1])
        ):
            self.optimizer_step()
            return HOST
        if name in SINK_METHODS or name in frameworks.SINKS:
            for value in args.all():
                self.consume(value)
            return UNKNOWN
        return self.unknown_call(expr, args, base)

    def prepared(self, expr: ir.Call, args: Args) -> Val:
        """`accelerator.prepare(model, optimizer, loader)` gives back what it got."""
        if len(args.positional) == 1:
            return args.positional[0]
        return container(items=tuple(args.positional))

    def unknown_call(self, expr: ir.Call, args: Args, base: Val = UNKNOWN) -> Val:
        """Nothing is known of what is called: graphs handed to it go out of sight."""
        name = expr.method
        path = expr.func.path or ""
        if runs_backward(name) or self.steps_loss(name, args):
            for value in args.all():
                if value.tokens:
                    self.backward_event(expr, value, False, False, None)
            return HOST
        if args.any_graph() and CRITERION_NAME.search(path):
            result = self.combined([value for value in args.all() if _graphs(value)])
            return self.loss_result(expr, result) if not _is_unreduced(expr) else result
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
            _graphs(value) or (value.kind is Kind.UNKNOWN and value.tokens) for value in args.positional[:1]
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
                and any(_graphs(v) or v.kind is Kind.SYMBOL for v in args.all())
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
            return container(container())
        if name == "dict" and args.keywords:
            return container(items=tuple(args.keywords.values()))
        if args.positional:
            first = args.positional[0]
            return container(element(first) if first.kind is not Kind.UNKNOWN else None, first.items, flags)
        return container(flags=flags)

    # --- to be given by flow.py ----------------------------------------------------------------------------------

    def held(
        self,
        expr: ir.Call | None,
        how: str,
        path: str,
        value: Val,
        leaves: tuple[ir.Expr, ...],
        in_container: bool,
        bounded: bool,
    ) -> Holder | None:
        raise NotImplementedError

    def store_attribute(self, path: str, value: Val) -> None:
        raise NotImplementedError

    def is_statement(self, expr: ir.Call) -> bool:
        return isinstance(self.stmt, ir.ExprStmt) and self.stmt.value is expr


CONVERTED = Val(Kind.HOST, flags=8)
_RECURRENT = ("LSTM", "GRU", "RNN")


def _graphs(value: Val) -> bool:
    if value.kind is Kind.GRAPH:
        return True
    return value.kind is Kind.CONTAINER and value.elem is not None and _graphs(value.elem)


def _weak_join(a: Val, b: Val) -> Val:
    """What a list holds after one more append: graphs stay graphs beside numbers."""
    if a.kind is Kind.NUMBER or b.kind is Kind.NUMBER or a.kind is b.kind:
        return join(a, b)
    return join(a, b).with_tokens(a.tokens | b.tokens)


def _shaped(shape: Val, made: Val) -> Val:
    """Give a known result shape the graph of this call: tuples stay tuples, numbers numbers."""
    if shape.kind is Kind.CONTAINER:
        items = None if shape.items is None else tuple(_shaped(item, made) for item in shape.items)
        elem = None if shape.elem is None else _shaped(shape.elem, made)
        return container(elem, items, shape.flags, shape.ref)
    if shape.kind in (Kind.HOST, Kind.NUMBER, Kind.DEVICE):
        return shape
    if shape.kind is Kind.GRAPH:
        keep = (SCALAR | LOSS | CHECKPOINTED) if shape.flags & (SCALAR | LOSS) else CHECKPOINTED
        flags = (shape.flags & keep) | (made.flags & (UNSURE_GRAD | MAYBE))
        if not shape.flags & (SCALAR | LOSS):
            flags |= made.flags & LARGE
        return Val(Kind.GRAPH, made.tokens | shape.tokens, flags)
    return made


def _asks_for_training(guard: ir.Stmt) -> bool:
    """`if phase == "train":`, `if training:`, `if self.training:`."""
    if not isinstance(guard, ir.If):
        return False
    test = guard.test
    if isinstance(test, ir.Op) and test.op == "==":
        return any(isinstance(part, ir.Const) and "train" in str(part.value) for part in test.operands)
    last = test.attr if isinstance(test, ir.Attr) else test.path or ""
    return "train" in last


def _is_dense(module: Val) -> bool:
    """A language model or a segmentation network, by its class or its maker's name."""
    if isinstance(module.ref, str):
        return module.ref.endswith(("ForCausalLM", "LMHeadModel", "ForMaskedLM", "ForConditionalGeneration", "ForSeq2SeqLM")) or (
            "egmentation" in module.ref
        )
    return module.ref is not None and module.ref.is_dense


def _is_modulo(guard: ir.Stmt) -> bool:
    """`if (i + 1) % k == 0:`, `if len(batch_losses) == k:`."""
    if not isinstance(guard, ir.If):
        return False
    return any(isinstance(part, ir.Op) and part.op == "%" for part in ir.walk(guard.test))


def _is_unreduced(call: ir.Call) -> bool:
    reduction = call.keyword("reduction")
    return isinstance(reduction, ir.Const) and reduction.value == "none"


def _is_true(expr: ir.Expr | None) -> bool:
    return expr is not None and not (isinstance(expr, ir.Const) and not expr.value)


def _is_super(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Call) and isinstance(expr.func, ir.Name) and expr.func.id == "super"


def outputs_path(call: ir.Call) -> str | None:
    found = call.argument(0, "outputs")
    return None if found is None else found.path
