"""What torch's functions, modules and backward do to values."""

from __future__ import annotations

from dataclasses import replace

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import is_periodic
from gpulint.analysis.code.pooling import is_pooling
from gpulint.analysis.code.reading import may_give_number
from gpulint.analysis.file.evidence import LOSSY
from gpulint.analysis.file.facts import (
    Backward,
    Forward,
    ForwardMode,
    ForwardModule,
    ForwardResult,
)
from gpulint.analysis.file.summaries import retokened
from gpulint.analysis.flow.evaluate import Evaluator
from gpulint.analysis.torch.backward import Api, Through, api_of, is_known_torch
from gpulint.analysis.torch.names import (
    JOINS,
    PAIRS,
    REDUCTIONS,
    TO_DEVICE,
    TO_HOST,
    is_loss_function,
    is_plain_module,
)
from gpulint.analysis.values.arguments import Args, bind_arguments, graphs, is_true, is_unreduced
from gpulint.analysis.values.reducing import has_dimension, is_reduced, is_whole, stays_scalar
from gpulint.analysis.values.values import (
    CRITERION,
    DENSE,
    DEVICE,
    EVAL,
    FROZEN,
    GUARDED,
    HOST,
    LARGE,
    LOADER,
    LOSS,
    MAYBE,
    NAMED,
    NO_TOKENS,
    OPEN,
    OPTIMIZER,
    OUTPUT,
    PHASED,
    PLAIN,
    ROLE,
    SCALAR,
    UNKNOWN,
    UNSHOWN,
    UNSURE_GRAD,
    VIEW,
    Flag,
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
)

CONVERTED = Val(Kind.HOST, flags=Flag.CONVERTED.value)
# What a tensor can be computed with.
_OPERANDS = frozenset({Kind.DEVICE, Kind.HOST, Kind.NUMBER, Kind.CONTAINER, Kind.UNKNOWN, Kind.SYMBOL})


class TorchCalls(Evaluator):
    """Calls of torch, of modules, and of backward."""

    def constructed(self, made: str, args: Args) -> Val:
        if made == "wrap":
            return args.first() if args.first().kind is Kind.MODULE else Val(Kind.MODULE)
        return {"optimizer": OPTIMIZER, "loader": LOADER, "host": HOST}.get(made, UNKNOWN)

    def torch_call(self, expr: ir.Call, qualified: str, args: Args) -> Val:
        last = qualified.rsplit(".", 1)[-1]
        if qualified.startswith("torch.nn.") and not qualified.startswith(
            ("torch.nn.functional.", "torch.nn.utils.", "torch.nn.init.")
        ):
            if last[:1].isupper():
                return self.torch_class(expr, qualified, last, args)
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
        if (api := api_of(qualified)) is not None and api.through in (Through.GIVEN, Through.FUNCTION):
            return self.differentiating_call(expr, api, args)
        if last == "Variable":
            return args.first()
        if qualified in ("torch.compile", "torch.jit.script", "torch.jit.trace") or qualified.endswith(
            "fully_shard"
        ):
            return args.first()
        if qualified.endswith(("checkpoint.checkpoint", "checkpoint_sequential")):
            return self.checkpoint_call(expr, args)
        if last == "GradScaler":
            return UNKNOWN  # its `scale` gives back what it is given
        if qualified in ("torch.load", "torch.save") or qualified.startswith(
            ("torch.cuda.", "torch.backends.", "torch.hub.")
        ):
            return Val(Kind.MODULE) if qualified == "torch.hub.load" else UNKNOWN if last == "load" else HOST
        if qualified.startswith("torch.distributed."):
            first = args.first()
            return (
                first if first.kind is Kind.MODULE else HOST
            )  # FullyShardedDataParallel(model), fully_shard(model)
        if not is_known_torch(qualified):
            for value in args.all():
                self.escape(value)
        if last in JOINS:
            self.joined(expr, args)
        return self.tensor_function(expr, last, args)

    def torch_class(self, expr: ir.Call, qualified: str, last: str, args: Args) -> Val:
        if last in ("Parameter", "UninitializedParameter", "Buffer"):
            return Val(Kind.GRAPH, frozenset({self.file.leaf}), MAYBE)
        if last in ("DataParallel", "DistributedDataParallel") and args.positional:
            first = args.positional[0]
            return first if first.kind is Kind.MODULE else Val(Kind.MODULE)
        if is_loss_function(
            qualified
        ):  # one that leaves a loss for each sample computes like any other module
            return Val(Kind.MODULE, flags=CRITERION if is_reduced(expr) else PLAIN, ref=last)
        flags = PLAIN if is_plain_module(last) else 0
        return Val(Kind.MODULE, flags=flags, ref=last)

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
        if name in TO_DEVICE or name.endswith("Tensor"):  # `torch.FloatTensor(numbers)`
            for value in values:
                self.consume(value)
            requires = expr.keyword("requires_grad")
            if isinstance(requires, ir.Const) and requires.value is True:
                return Val(Kind.GRAPH, frozenset({self.file.leaf}), MAYBE)
            return DEVICE
        result = self.combined(values)
        if name not in REDUCTIONS and not stays_scalar(name, values):
            result = result.without_flags(SCALAR)
        if out is not None:
            return out
        if name in PAIRS and result.kind in (Kind.GRAPH, Kind.DEVICE, Kind.SYMBOL):
            by_dimension = expr.keyword("dim") is not None or expr.keyword("k") is not None
            if by_dimension or any(value.kind in (Kind.NUMBER, Kind.HOST) for value in args.positional[1:2]):
                return container(items=(result, DEVICE))
            return result.without_flags(LARGE | VIEW)
        if name in REDUCTIONS or name.endswith("_loss") or is_loss_function(f"torch.{name}"):
            small = result.without_flags(LARGE | VIEW | OUTPUT)
            if is_loss_function(f"torch.{name}") and not is_unreduced(expr):
                return self.loss_result(expr, small)
            has_dim = has_dimension(expr, args)
            if has_dim and (name in ("mean", "amax") or is_pooling(self.function, expr)):
                return result.without_flags(VIEW)
            if has_dim or small.kind is not Kind.GRAPH or not is_whole(expr, name, args):
                return small.without_flags(SCALAR)
            return small.with_flags(SCALAR)
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
        if self.state.grad is Grad.DISABLED:  # `cat([out, x])`: the one is a tensor, so the other is
            values = [part for value in values for part in value.items or (value,)]
        for value in values:
            flat = element(value) if value.kind is Kind.CONTAINER else value
            tokens |= value.tokens
            kinds.add(flat.kind)
            flags |= flat.flags & (LARGE | DENSE)
            if flat.kind is Kind.GRAPH and (graph is None or (graph.has(MAYBE) and not flat.has(MAYBE))):
                graph = flat
        if graph is not None:
            if self.state.grad is Grad.DISABLED:
                return detached(graph)
            extra = UNSURE_GRAD if self.state.grad is Grad.UNKNOWN else 0
            # A torch operation on it proves a tensor; only what was looked up by name may still be detached.
            gone = VIEW | OUTPUT if graph.has(NAMED) else VIEW | OUTPUT | MAYBE
            return Val(Kind.GRAPH, tokens, (graph.flags & ~gone) | flags | extra)
        if self.state.grad is Grad.DISABLED and Kind.DEVICE in kinds and kinds <= _OPERANDS:
            return Val(Kind.DEVICE, flags=flags & LARGE)
        if Kind.SYMBOL in kinds and Kind.MODULE not in kinds:
            unseen = any(value.kind is Kind.SYMBOL and value.has(OPEN) for value in values)
            symbol = Val(Kind.SYMBOL, tokens, OPEN if unseen else 0)
            return detached(symbol) if self.state.grad is Grad.DISABLED else symbol
        if Kind.DEVICE in kinds and kinds <= {Kind.DEVICE, Kind.HOST, Kind.NUMBER, Kind.CONTAINER}:
            return Val(Kind.DEVICE, flags=flags & LARGE)
        if self.state.grad is Grad.DISABLED and kinds & {Kind.UNKNOWN, Kind.SYMBOL, Kind.DEVICE}:
            return Val(Kind.UNKNOWN, tokens)
        return Val(Kind.UNKNOWN, tokens)

    def loss_result(self, expr: ir.Call, value: Val, unshown: bool = False) -> Val:
        """What a criterion gives; `unshown`: it may give a number on some path, for all that is seen of it."""
        if value.kind is Kind.GRAPH:
            made = (SCALAR if is_reduced(expr) else 0) | (UNSHOWN if unshown else 0) | LOSS
            return replace(value, flags=(value.flags & ~SCALAR | made) & ~(LARGE | VIEW | OUTPUT))
        if value.kind is Kind.DEVICE:
            return Val(Kind.DEVICE, flags=SCALAR | LOSS)
        return value

    # --- modules -------------------------------------------------------------------------------------------------

    def module_call(self, expr: ir.Call, module: Val, args: Args) -> Val:
        """Run a module. With grad enabled the result has a graph; a criterion's has one if its input has."""
        unseen = module.ref is None and len(expr.args) > 1 and bool(LOSSY.search(expr.func.path or ""))
        if module.has(CRITERION) or unseen:
            shape = self.own_criterion(expr, module, args)
            if shape is not None:
                return shape
            return (
                self.loss_result(expr, self.combined(args.all()), _is_unshown(module))
                if not is_unreduced(expr)
                else self.combined(args.all())
            )
        if module.has(PLAIN):
            shape = self.own_criterion(expr, module, args)
            return shape if shape is not None else self.combined(args.all())
        info = module.ref
        forward = info.method("forward") if info is not None and not isinstance(info, str) else None
        if forward is not None:
            return self.own_module_call(expr, module, forward, args)
        return self.graph_from(expr, module, args)

    def own_criterion(self, expr: ir.Call, module: Val, args: Args) -> Val | None:
        """A criterion or a metric of the project that gives several values, a tuple or a dict of losses, or none with a graph."""
        forward = (
            module.ref.method("forward")
            if module.ref is not None and not isinstance(module.ref, str)
            else None
        )
        if forward is None or not args.any_graph():
            return None
        shape = self.function_call(expr, Val(Kind.FUNCTION, ref=forward), args, module, None, forward=True)
        if shape.kind in (Kind.CONTAINER, Kind.HOST, Kind.NUMBER, Kind.DEVICE):
            return shape
        used = _used(forward)
        given = bind_arguments(forward, args, module)
        cut = used is not None and not any(graphs(value) for name, value in given.items() if name in used)
        return shape if cut else None

    def own_module_call(self, expr: ir.Call, module: Val, forward: ir.Function, args: Args) -> Val:
        """A module whose class is in the project: the shape of its result is known."""
        shape = self.function_call(expr, Val(Kind.FUNCTION, ref=forward), args, module, None, forward=True)
        if forward.home.switches_grad_off(forward):
            self.forward_event(expr, module, None)
            return detached(shape) if shape.kind in (Kind.GRAPH, Kind.CONTAINER) else Val(Kind.DEVICE)
        made = self.graph_from(expr, module, args)
        if self.record and (event := self.events.forwards.get(id(expr.origin))) is not None:
            event.result.dense |= shape.has(DENSE)
        if made.kind is not Kind.GRAPH:
            return detached(shape) if shape.kind in (Kind.GRAPH, Kind.CONTAINER) else made
        if shape.kind is Kind.UNKNOWN and self.file.guards_itself(forward):
            return made.with_flags(UNSURE_GRAD)
        site = self.file.site(expr, "forward", self.function, expr.func.path)
        site.inner = frozenset(s for s in shape.sites if s.function is not self.function and s is not site)
        return _shaped(retokened(shape, site.inner, site), made)

    def graph_from(self, expr: ir.Call, module: Val, args: Args) -> Val:
        frozen = module.has(FROZEN)
        maybe = module.flags & MAYBE
        if self.state.grad is Grad.DISABLED or module.has(GUARDED):
            self.forward_event(expr, module, None)
            return Val(Kind.DEVICE, flags=LARGE | OUTPUT | maybe | (DENSE if _is_dense(module) else 0))
        if frozen and not args.any_graph():
            self.forward_event(expr, module, None)
            return Val(Kind.UNKNOWN, args.tokens())
        site = self.site(expr, "forward", expr.func.path)
        self.carried(expr, args, frozenset({site}))
        self.make_fresh(site)
        event = self.forward_event(expr, module, site)
        if event is not None:
            event.inputs = frozenset(token for token in args.tokens() if isinstance(token, Site))
        dense = DENSE if _is_dense(module) else 0
        large = LARGE if args.all() else 0  # without input it makes parameters
        flags = large | OUTPUT | dense | maybe | (UNSURE_GRAD if self.state.grad is Grad.UNKNOWN else 0)
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
        site = self.file.site(expr, what, self.function, path)
        site.depth = len(self.loops)
        return site

    def checkpoint_call(self, expr: ir.Call, args: Args) -> Val:
        module = args.first()
        if module.kind is not Kind.MODULE or self.state.grad is Grad.DISABLED:
            return self.combined(args.positional[1:]) if args.positional else UNKNOWN
        return self.graph_from(expr, module, args)

    def forward_event(self, expr: ir.Call, module: Val, site: Site | None) -> Forward | None:
        if self.loops:
            self.loops[-1].forwards += 1
        self.summary.forwards += not self.loops
        self.summary.runs = True
        if not self.record or self.stmt is None:
            return None
        event = Forward(
            self.function, self.stmt, expr, site, tuple(self.loops),
            ForwardMode(self.state.grad, module.has(EVAL), guarded=bool(self.guards), phased=module.has(PHASED)),
            ForwardResult(), ForwardModule(expr.func.path or "", not module.has(MAYBE)),
        )  # fmt: skip
        event.result.dense = _is_dense(module)
        event.module.by_role = module.has(ROLE)
        event.module.network = module.ref
        self.events.forwards[id(expr.origin)] = event
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
        create = is_true(expr.keyword("create_graph"))
        retain = is_true(expr.keyword("retain_graph")) or create
        self.backward_event(
            expr, value, retain, create, outputs_path(expr), grad_only=qualified.endswith("grad")
        )
        self.summary.autograd_grad |= qualified.endswith("grad")
        if not qualified.endswith("grad"):
            return HOST
        return container(Val(Kind.GRAPH, value.tokens, MAYBE) if create else DEVICE)

    def differentiating_call(self, expr: ir.Call, api: Api, args: Args) -> Val:
        """`dist_autograd.backward(context, [loss])` goes through what it is given; who is given a function may go through
        whatever comes with it."""
        for value in args.all():
            if api.through is Through.GIVEN and value.tokens:
                self.backward_event(expr, value, False, False, None)
            elif value.tokens:
                self.escape(value)
        return Val(Kind.UNKNOWN, args.tokens())

    def backward_event(
        self, expr: ir.Call, value: Val, retain: bool, create: bool, path: str | None, grad_only: bool = False
    ) -> None:
        if self.loops:
            self.loops[-1].backwards += 1
        self.summary.backwards += 1
        self.summary.direct_backwards += not self.loops
        if self.record and self.stmt is not None:
            self.events.backwards[id(expr.origin)] = Backward(
                self.function, self.stmt, expr, tuple(self.loops), value.tokens, retain, create,
                expr.keyword("retain_graph") is not None, path, value, grad_only,
                every_k=any(isinstance(guard, ir.If) and is_periodic(guard.test) for guard in self.guards), guarded=bool(self.guards),
            )  # fmt: skip
        for token in value.tokens:
            if isinstance(token, ParamToken) and token.function is self.function:
                self.summary.frees.add(token.name)
        self.shown(value, (path, *(arg.path for arg in expr.args)))
        self.free(value, retain)

    def shown(self, value: Val, paths: tuple[str | None, ...]) -> None:
        """What goes backward is a tensor, whatever made it."""
        for path in paths:
            known = self.state.vars.get(path or "")
            if known is not None and known.has(UNSHOWN) and known.tokens == value.tokens:
                self.state.vars[path or ""] = known.without_flags(UNSHOWN)

    def backward_method(self, expr: ir.Call, func: ir.Attr, base: Val) -> Val:
        """`loss.backward()`, or `engine.backward(loss)` where the owner is no tensor."""
        args = self.arguments(expr)
        create = is_true(expr.keyword("create_graph"))
        retain = is_true(expr.keyword("retain_graph")) or create
        first = args.positional[0] if args.positional else args.keywords.get("loss")
        if _is_last(func.base):
            base = replace(base, tokens=frozenset(t for t in base.tokens if not isinstance(t, Holder)))
        engine = base.kind not in (Kind.GRAPH, Kind.DEVICE) and first is not None
        if engine and first is not None and base.tokens and not graphs(first):
            engine = False  # loss.backward(gradient)
        if engine:
            path = expr.args[0].path if expr.args else None
            through = [value for value in args.all() if value.tokens]
            for value in through or [UNKNOWN]:
                self.backward_event(expr, value, retain, create, path)
        else:
            self.backward_event(expr, base, retain, create, func.base.path)
        return HOST


def _is_last(expr: ir.Expr) -> bool:
    """`losses[-1]`: only what was added last, not all that the list holds."""
    return isinstance(expr, ir.Sub) and isinstance(expr.index, ir.Const) and expr.index.value == -1


def _shaped(shape: Val, made: Val) -> Val:
    """Give a known result shape the graph of this call: tuples stay tuples, numbers numbers."""
    if shape.kind is Kind.CONTAINER:
        items = None if shape.items is None else tuple(_shaped(item, made) for item in shape.items)
        elem = None if shape.elem is None else _shaped(shape.elem, made)
        return container(elem, items, shape.flags, shape.ref)
    if shape.kind in (Kind.HOST, Kind.NUMBER, Kind.DEVICE):
        return shape
    if shape.kind is Kind.GRAPH:
        flags = (shape.flags & (SCALAR | LOSS)) | (made.flags & (UNSURE_GRAD | MAYBE))
        if not shape.flags & (SCALAR | LOSS):
            flags |= made.flags & LARGE
        return Val(Kind.GRAPH, made.tokens | shape.tokens, flags)
    return made


def _is_unshown(criterion: Val) -> bool:
    """Whether a criterion may give a number in place of a tensor: its forward is not seen, or has a way to one."""
    if isinstance(criterion.ref, str):
        return False
    forward = criterion.ref.method("forward") if criterion.ref is not None else None
    return forward is None or may_give_number(forward)


def _used(forward: ir.Function) -> frozenset[str] | None:
    """The parameters of which a criterion computes what it gives: `target` alone, where it takes the `argmax` of the scores. None
    where something else goes into it."""
    summary = forward.home.summary(forward)
    result = summary.returns if summary is not None else None
    if result is None or result.kind is not Kind.SYMBOL or result.has(OPEN):
        return None
    params = frozenset(token.name for token in result.tokens if isinstance(token, ParamToken))
    return params if len(params) == len(result.tokens) else None


def _is_dense(module: Val) -> bool:
    """A language model or a segmentation network, by its class or its maker's name."""
    if isinstance(module.ref, str):
        return module.ref.endswith(
            ("ForCausalLM", "LMHeadModel", "ForMaskedLM", "ForConditionalGeneration", "ForSeq2SeqLM")
        ) or ("egmentation" in module.ref)
    return module.ref is not None and module.ref.is_dense


def outputs_path(call: ir.Call) -> str | None:
    found = call.argument(0, "outputs")
    return None if found is None else found.path
