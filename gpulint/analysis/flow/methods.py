"""What a method does, by what it is called on: tensors, containers, modules, optimizers, instances."""

from __future__ import annotations

from gpulint.analysis.code import ir
from gpulint.analysis.file.classes import is_abstract
from gpulint.analysis.file.evidence import unmoved
from gpulint.analysis.file.facts import Keep
from gpulint.analysis.flow.torch_calls import CONVERTED, TorchCalls
from gpulint.analysis.torch import frameworks
from gpulint.analysis.torch.names import (
    KEEPS_GRAPH,
    PAIRS,
    REDUCTIONS,
    TO_DEVICE,
    TO_HOST,
)
from gpulint.analysis.values.arguments import Args, weak_join
from gpulint.analysis.values.values import (
    BOUNDED,
    DEVICE,
    EVAL,
    FROZEN,
    HOST,
    MAYBE,
    NAMED,
    ON_HOST,
    OUTPUT,
    PHASED,
    SCALAR,
    UNKNOWN,
    VIEW,
    Grad,
    Kind,
    Val,
    container,
    detached,
    element,
)


class Methods(TorchCalls):
    """Methods of values whose kind is known."""

    def method_call(self, expr: ir.Call, func: ir.Attr, base: Val) -> Val:
        name = func.attr
        kind = base.kind
        if name == "backward" and not (kind is Kind.INSTANCE and self.file.method(base.ref, name)):
            return self.backward_method(expr, func, base)
        if (
            name in ("eval", "train")
            and kind in (Kind.SYMBOL, Kind.UNKNOWN)
            and not expr.args
            and self.file.uses_torch
        ):
            return self.module_method(expr, func, Val(Kind.MODULE))
        if kind in (Kind.GRAPH, Kind.DEVICE, Kind.SYMBOL):
            found = self.tensor_method(expr, func, base)
            if found is not None:
                return found
        if kind is Kind.CONTEXT and name in ("__enter__", "__exit__"):
            self.state.grad = base.ref if name == "__enter__" else self.facts.grad_at_entry
            return UNKNOWN
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
            if name in frameworks.INHERITED_LOADERS and base.ref.is_module:
                self.arguments(expr)
                return self.file.instance_of(base.ref)
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
        if base.kind is Kind.SYMBOL and name in ("values", "items", "get", "pop"):
            self.arguments(expr)
            return container(base) if name in ("values", "items") else base
        if base.has(OUTPUT) and name in ("values", "items", "get", "pop", "keys", "to_tuple"):
            self.arguments(expr)
            return container(Val(base.kind, base.tokens, base.flags | MAYBE))
        if name in TO_HOST or name in TO_DEVICE or name in KEEPS_GRAPH or name in PAIRS or name in REDUCTIONS:
            args = self.arguments(expr)
            if name == "numpy" and base.kind is Kind.SYMBOL:
                return CONVERTED
            values = Args([base, *args.positional], args.keywords)
            if name in ("add_", "sub_") and self.loops and args.positional:
                return self.added_in_place(expr, func, args.positional[0], self.combined(values.all()))
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
                self.changed_in_place(func.base.path, result)
            return result
        return None

    def changed_in_place(self, path: str, value: Val) -> None:
        """The tensor at a place gets another value and stays as old as it was."""
        born = self.state.born_at(path)
        self.state.vars[path] = value
        self.state.born.setdefault(path, -1 if born is None else born)
        if "." in path or "[" in path:
            self.state.dotted.add(path)

    def added_in_place(self, expr: ir.Call, func: ir.Attr, added: Val, result: Val) -> Val:
        """`total.add_(loss)` is `total += loss`."""
        path = func.base.path
        if path is None or (isinstance(func.base, ir.Attr) and func.base.attr in ("data", "grad")):
            return result
        token = self.held(expr, "add", path, added, expr.args[:1], False, False)
        if result.kind is Kind.GRAPH:
            self.changed_in_place(path, result if token is None else result.with_tokens((token,)))
        return result

    def moved(self, base: Val, expr: ir.Call) -> Val:
        """`.cpu()` and `.to(…)` keep the graph; without one, `.cpu()` lets the device go."""
        places = (*expr.args, *(value for name, value in expr.keywords if name == "device"))
        to_cpu = expr.method == "cpu" or any(
            isinstance(place, ir.Const) and place.value == "cpu" for place in places
        )
        if base.kind is Kind.DEVICE:
            # Where an unknown device is, only the caller knows: what is copied there is no parameter any more.
            return HOST if to_cpu else Val(Kind.DEVICE, flags=base.flags & ~VIEW)
        known = base if base.has(NAMED) else base.without_flags(MAYBE | OUTPUT)
        if base.kind is Kind.GRAPH and (to_cpu or places):
            return known.with_flags(ON_HOST) if to_cpu else known.without_flags(ON_HOST)
        return known

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
            added = self.container_add(expr, func, base, args)
            if name == "setdefault" and len(args.positional) > 1:
                known = element(base)
                return known if known.kind is Kind.CONTAINER else args.positional[1]
            return added
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
        if isinstance(func.base, ir.Call) and func.base.method == "setdefault":
            path = func.base.func.base.path if isinstance(func.base.func, ir.Attr) else None
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
            if how == "append" and value.kind in (Kind.UNKNOWN, Kind.SYMBOL):
                value = self.appended(path, value)
            token = self.held(expr, how, path, value, (leaf,), in_container=True, bounded=base.has(BOUNDED))
            stored = (
                value.elem if name in ("extend", "extendleft", "update") and value.elem is not None else value
            )
            if token is not None:
                stored = stored.with_tokens((token,))
            inner = isinstance(func.base, ir.Call) or (
                isinstance(func.base, ir.Sub) and func.base.path is None
            )
            self.add_to(path, container() if inner else base, container(stored) if inner else stored)
        return HOST

    def appended(self, path: str, value: Val) -> Val:
        """`losses.append(f(x))` where `losses[-1].backward()` is called: a tensor with a graph."""
        last = f"{path}[-1]"
        if last not in self.evidence.backward or self.state.grad is Grad.DISABLED:
            return value
        return self.opaque(path, value, SCALAR if last in self.evidence.scalars else 0)

    def add_to(self, path: str, base: Val, stored: Val) -> None:
        elem = stored if base.elem is None else weak_join(base.elem, stored)
        self.refill(path, container(elem, flags=base.flags & BOUNDED))

    def refill(self, path: str, updated: Val) -> None:
        """A container changes in place: it stays as old as it was."""
        self.state.vars[path] = updated
        born = self.state.born_at(path)
        self.state.born.setdefault(path, -1 if born is None else born)
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
            self.set_mode(unmoved(func).base.path, value, mode and not unknown)
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
            if name == "requires_grad_":
                required = expr.argument(0, "requires_grad")
                frozen = isinstance(required, ir.Const) and required.value is False
                base = base.with_flags(FROZEN) if frozen else base.without_flags(FROZEN)
                if func.base.path is not None and func.base.path in self.state.vars:
                    self.state.vars[func.base.path] = base
            return base
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
        if name in frameworks.SURE_FORWARDS and args.all():
            return self.graph_from(expr, base, args)
        if name in frameworks.FORWARD_METHODS:
            known = isinstance(base.ref, str) and name in frameworks.UNGUARDED_METHODS
            return self.graph_from(expr, base if known else base.with_flags(MAYBE), args)
        return self.unknown_call(expr, args)

    def set_mode(self, path: str | None, value: Val, evaluating: bool) -> None:
        if evaluating:
            self.facts.calls_eval = True
        if path is None:
            return
        born = self.state.born_at(path)
        self.state.assign(path, value, born if born is not None else -1)

    def settled(self, network: ir.Expr) -> None:
        """The program asserts that a network is in eval mode: from here on it is."""
        path = network.path
        if path is None or path == self.self_name:
            return
        known = self.eval(network)
        if known.kind in (Kind.UNKNOWN, Kind.SYMBOL):
            known = Val(Kind.MODULE)
        if known.kind is Kind.MODULE:
            self.set_mode(path, known.with_flags(EVAL), True)
            if not self.guards and any(param.name == path for param in self.function.params):
                self.summary.settled.add(path)

    def optimizer_method(self, expr: ir.Call, func: ir.Attr, base: Val) -> Val:
        args = self.arguments(expr)
        if func.attr == "step":
            self.steps_with(expr, args)
            for value in args.all():
                if value.kind is Kind.FUNCTION:
                    return self.function_call(expr, value, Args([], {}), None, None)
        return HOST if func.attr != "minimize" else self.unknown_call(expr, args)

    def steps_with(self, expr: ir.Call, args: Args) -> None:
        """`optimizer.step()`; one that is given the loss runs the backward itself."""
        self.optimizer_step()
        for value in args.positional[:1]:
            if value.tokens and value.kind in (Kind.GRAPH, Kind.UNKNOWN, Kind.SYMBOL):
                self.backward_event(expr, value, False, False, expr.args[0].path)

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
        if func.base.path == self.self_name:
            self.file.note_overrides(base.ref, name, self.state.grad)
        if method is not None and name == "forward" and base.ref.is_module and is_abstract(method):
            return self.module_method(expr, func, Val(Kind.MODULE, flags=base.flags & EVAL))
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
        stored = self.attribute(func)  # the state's own, if this function set it: `self.net.eval()`
        if stored.kind in (Kind.MODULE, Kind.FUNCTION, Kind.CLASS, Kind.INSTANCE):
            return self.value_call(expr, stored, self.arguments(expr))
        if stored.kind is Kind.HOST:
            return self.unknown_call(expr, self.arguments(expr))
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
            self.held(
                expr,
                "call",
                f"{func.base.path}.{holder}",
                args.positional[0],
                expr.args[:1],
                True,
                False,
                keep,
            )
        return HOST

    def instance_call(self, expr: ir.Call, base: Val, args: Args) -> Val:
        info = base.ref
        method = info.method("__call__")
        if method is not None:
            return self.function_call(expr, Val(Kind.FUNCTION, ref=method), args, base, expr.func.path)
        if info.is_module:
            return self.module_call(expr, Val(Kind.MODULE, flags=base.flags & EVAL, ref=info), args)
        return self.unknown_call(expr, args)


def is_super(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Call) and isinstance(expr.func, ir.Name) and expr.func.id == "super"
