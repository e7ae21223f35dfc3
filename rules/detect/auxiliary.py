"""Networks of a training step that nothing trains: target networks, teachers, the real side of a perceptual loss.

Their forward builds a graph, backward goes through it, and the gradients that it leaves are never used. To say so, all
of it has to be seen: the optimizers, where the network comes from, and that nothing before it wants a gradient.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.file.facts import Forward, FunctionFacts
from gpulint.analysis.questions.grad.freezing import switching_words
from gpulint.analysis.torch import frameworks
from gpulint.analysis.torch.methods import GIVES_ITSELF
from gpulint.analysis.torch.names import HOST_ATTRS, KEEPS_GRAPH, PAIRS, REDUCTIONS, TO_DEVICE
from gpulint.analysis.values.values import Grad, Kind, ParamToken, Site, Token

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

# Who switches gradients by hand has decided about graphs in a way that no name shows.
SWITCHES_GRAD = frozenset(
    "requires_grad requires_grad_ set_requires_grad toggle_grad toggle_optimizer freeze unfreeze set_grad_enabled "
    "register_hook retain_grad functional_call vmap".split()
)
_WRAPPERS = frozenset("DataParallel DistributedDataParallel DDP DP compile".split())
_PLAIN = KEEPS_GRAPH | REDUCTIONS | PAIRS | TO_DEVICE | {"tensor", "FloatTensor", "LongTensor", "Variable"}


def untrained_forwards(
    file: FileAnalysis, functions: list[FunctionFacts]
) -> list[tuple[FunctionFacts, Forward]]:
    """The forwards of networks that no optimizer steps, fed with nothing but data, that a backward goes through."""
    candidates = [
        (facts, forward)
        for facts in functions
        if facts.has_backward and not (facts.role.is_test or facts.needs_grad or facts.role.is_module_forward)
        for forward in facts.forwards
        if _is_candidate(facts, forward)
    ]
    if not candidates or switching_words(file.evidence, SWITCHES_GRAD):
        return []
    networks = _Networks(file)
    if not networks.trained:
        return []
    found = [
        (facts, forward)
        for facts, forward in candidates
        if networks.is_auxiliary(_key(forward.module.path)) and _Inputs(file, facts).are_data(forward.call)
    ]
    while True:  # a target actor may feed a target critic, a trained actor may not
        sites = {forward.site for _, forward in found}
        kept = [
            item for item in found if item[1].inputs <= sites and _has_graphs_beside(item[0], item[1], sites)
        ]
        if len(kept) == len(found):
            return kept
        found = kept


def _has_graphs_beside(facts: FunctionFacts, forward: Forward, untrained: set[Site | None]) -> bool:
    """Whether each backward through the forward is there for something else as well. One that is not is run for the
    gradients of this very network: somebody reads them by hand."""
    return all(
        any(isinstance(token, ParamToken) or _is_of_network(token, untrained) for token in backward.tokens)
        for backward in facts.backwards
        if forward.site in backward.tokens
    )


def _is_of_network(token: Token, untrained: set[Site | None]) -> bool:
    return isinstance(token, Site) and token.what != "loss" and token not in untrained


def _is_candidate(facts: FunctionFacts, forward: Forward) -> bool:
    if (
        forward.mode.grad is not Grad.ENABLED
        or forward.site is None
        or not forward.result.freed
        or forward.mode.phased
    ):
        return False
    path = _key(forward.module.path)
    return "." not in path.removeprefix("self.") and any(forward.site in b.tokens for b in facts.backwards)


def _key(path: str) -> str:
    """A network's name: `self.net` for `self.net.forward` and for `self.net.module`."""
    for ending in (".forward", ".module", ".__call__"):
        path = path.removesuffix(ending)
    return path


class _Networks:
    """The networks of a file by name: which optimizers step, which are copies, and where each comes from."""

    def __init__(self, file: FileAnalysis) -> None:
        self.file = file
        self.trained: set[str] = set()
        self.understood = True
        self.made: dict[str, list[ir.Expr]] = {}
        self.evals: set[str] = set()
        self.trains: set[str] = set()
        self.copies: set[str] = set()
        self.handed: set[str] = set()
        for function in file.module.functions:
            evidence = file.evidence[function]
            self.evals |= evidence.evals
            self.trains |= evidence.trains
            lists: dict[str, ir.Expr] = {}
            for statement in ir.statements(function.body):
                self._assignment(statement, lists)
                for part in ir.own_parts(statement):
                    if isinstance(part, ir.Call):
                        self._call(statement, part, lists)
            self.copies |= copied_parameters(function)
            loops = [s.target for s in ir.statements(function.body) if isinstance(s, ir.For)]
            if any(isinstance(t, ir.Name) and t.id in self.trained for t in loops):
                self.understood = False  # the parameters of whatever the loop runs through
        if not self.understood or "self" in self.trained:
            self.trained = set()

    def _assignment(self, statement: ir.Stmt, lists: dict[str, ir.Expr]) -> None:
        if not isinstance(statement, ir.Assign) or statement.value is None:
            return
        pairs: list[tuple[ir.Expr, ir.Expr]] = []
        for target in statement.targets:
            if isinstance(target, ir.Seq) and isinstance(statement.value, ir.Seq):
                pairs += zip(target.items, statement.value.items, strict=False)
            else:
                pairs.append((target, statement.value))
        for target, value in pairs:
            if target.path is None:
                continue
            lists[target.path] = value
            inner = _unmoved(value)
            if inner.path == target.path:
                continue  # `net = net.cuda()`
            self.made.setdefault(target.path, []).append(inner)
            if value is not inner and any(
                isinstance(part, ir.Call) and part.method == "eval" and not part.args
                for part in _chain(value)
            ):
                self.evals.add(target.path)

    def _call(self, statement: ir.Stmt, call: ir.Call, lists: dict[str, ir.Expr]) -> None:
        name = call.method
        owner = call.func.base.path if isinstance(call.func, ir.Attr) else None
        if is_optimizer(self.file, call):
            owners = optimized(call, lists)
            self.trained |= owners
            self.understood &= bool(owners) or self._steps_tensors(call, lists)
        elif name == "step" and owner is not None and owner.rpartition(".")[2].startswith("opt"):
            holder = owner.rpartition(".")[0]
            if holder not in ("", "self"):
                self.trained.add(holder)  # `self.net.optimizer.step()`
        elif name == "load_state_dict" and owner is not None and call.args:
            source = call.args[0]
            if isinstance(source, ir.Call) and source.method == "state_dict":
                self.copies.add(owner)
        elif name not in _WRAPPERS and name != "deepcopy":
            arguments = (*call.args, *(value for _, value in call.keywords))
            networks = {part.path for arg in arguments for part in _items(arg) if part.path in self.made}
            if len(networks) == 2:
                self._copied_by(call)
            if name[:1].isupper() or (len(networks) < 2 and not isinstance(statement, ir.ExprStmt)):
                self.handed |= networks
            elif (
                len(networks) < 2
                and self.file.free_name(self.file.module.body, name).kind is not Kind.FUNCTION
            ):
                self.handed |= networks  # an unknown function may freeze it

    def _copied_by(self, call: ir.Call) -> None:
        """`soft_update(target, net, tau)`, of a function whose loop writes the parameters of one from the other's."""
        callee = self.file.free_name(self.file.module.body, call.func.path or "")
        if callee.kind is not Kind.FUNCTION or not isinstance(callee.ref, ir.Function):
            return
        written = copied_parameters(callee.ref)
        names = [param.name for param in callee.ref.params]
        for name, arg in (*zip(names, call.args, strict=False), *call.keywords):
            if name in written and arg.path is not None:
                self.copies.add(arg.path)

    def _steps_tensors(self, call: ir.Call, lists: dict[str, ir.Expr]) -> bool:
        """`Adam([log_alpha])` of a tensor that was made by itself."""
        first = call.argument(0, "params")
        if not isinstance(first, ir.Seq):
            return False
        made = [lists.get(item.path or "") for item in first.items]
        return all(
            isinstance(value, ir.Call)
            and (self.file.names.qualify(value.func.path or "") or "").startswith("torch.")
            for value in made
        )

    def is_auxiliary(self, path: str) -> bool:
        """Whether a network is a copy of another or always in eval mode, is stepped by nobody, and was not frozen."""
        if path in self.trained or path in self.handed or path not in self.made:
            return False
        origins = self.made[path]
        copied = path in self.copies or any(_is_copy(origin) for origin in origins)
        if not copied and (path not in self.evals or path in self.trains):
            return False
        return all(self._is_thawed(origin) for origin in origins)

    def _is_thawed(self, origin: ir.Expr) -> bool:
        """Whether what makes the network is known to leave its parameters trainable."""
        while isinstance(origin, ir.Attr) and not isinstance(origin.base, ir.Name):
            origin = origin.base  # `vgg16().features`
        if not isinstance(origin, ir.Call):
            return False
        if _is_copy(origin):
            return bool(origin.args) and origin.args[0].path in self.trained
        name = origin.func.path
        if name is None:
            return False
        qualified = self.file.names.qualify(name)
        if qualified is None:
            return name in self.file.classes
        if frameworks.constructor(qualified) == "module" or qualified.startswith("torch.nn."):
            return True
        found = self.file.imported_value(qualified)
        if found is not None:
            return found.kind is Kind.CLASS and not switching_words(
                found.ref.cls.methods.values(), SWITCHES_GRAD | {"no_grad", "inference_mode"}
            )
        parent = qualified.rpartition(".")[0]
        return any(
            isinstance(other, ir.Call)
            and (self.file.names.qualify(other.func.path or "") or "").rpartition(".")[0] == parent
            for path in self.trained
            for other in self.made.get(path, ())
        )


def copied_parameters(function: ir.Function) -> set[str]:
    """The networks whose parameters a loop over the pairs of two networks' parameters writes from the other's.

    `for t, p in zip(target.parameters(), net.parameters()): t.data.copy_(tau * p.data + (1 - tau) * t.data)`.
    """
    found: set[str] = set()
    for loop in ir.statements(function.body):
        if not isinstance(loop, ir.For) or not isinstance(loop.target, ir.Seq):
            continue
        pairs = loop.iterable
        if not isinstance(pairs, ir.Call) or pairs.method != "zip" or len(pairs.args) != 2:
            continue
        for name, source in zip(loop.target.items, pairs.args, strict=False):
            if (
                isinstance(source, ir.Call)
                and source.method == "parameters"
                and isinstance(source.func, ir.Attr)
                and source.func.base.path is not None
                and any(
                    call.method == "copy_"
                    and isinstance(call.func, ir.Attr)
                    and call.func.base.path in (name.path, f"{name.path}.data")
                    for _, call in ir.calls(loop.body)
                )
            ):
                found.add(source.func.base.path)
    return found


def _is_copy(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Call) and expr.method == "deepcopy"


def _items(expr: ir.Expr) -> Iterator[ir.Expr]:
    """An argument, or what is in the display that it is."""
    if isinstance(expr, (ir.Seq, ir.DictDisplay)):
        for child in expr.children():
            yield from _items(child)
    else:
        yield expr


def _chain(expr: ir.Expr) -> Iterator[ir.Expr]:
    """A chain of methods from its end: `Net().cuda().eval()` and the calls inside it."""
    while isinstance(expr, (ir.Call, ir.Attr)):
        yield expr
        expr = expr.func if isinstance(expr, ir.Call) else expr.base


def _unmoved(expr: ir.Expr) -> ir.Expr:
    """`Net()` of `DataParallel(Net().cuda()).eval()`."""
    while isinstance(expr, ir.Call):
        if expr.method in _WRAPPERS and expr.args:
            expr = expr.args[0]
        elif expr.method in GIVES_ITSELF and isinstance(expr.func, ir.Attr):
            expr = expr.func.base
        else:
            break
    return expr


def is_optimizer(file: FileAnalysis, call: ir.Call) -> bool:
    path = call.func.path or ""
    qualified = file.names.qualify(path) or path
    if qualified.startswith("optim."):
        qualified = f"torch.{qualified}"  # by way of `from common import *`
    if qualified.startswith("torch.optim.") and "lr_scheduler" not in qualified:
        return call.method[:1].isupper()
    return frameworks.constructor(qualified) == "optimizer"


def optimized(call: ir.Call, lists: dict[str, ir.Expr], depth: int = 2) -> set[str]:
    """`G` and `self.E` in `Adam(list(G.parameters()) + list(self.E.parameters()))`, through names bound before."""
    found: set[str] = set()
    for arg in (*call.args, *(value for _, value in call.keywords)):
        for part in ir.walk(arg):
            if isinstance(part, ir.Call) and part.method in ("parameters", "named_parameters"):
                owner = part.func.base.path if isinstance(part.func, ir.Attr) else None
                if owner is not None:
                    found.add(_key(owner))
                    found.add(
                        _key(owner).partition(".")[0] if not owner.startswith("self.") else _first(owner)
                    )
            elif isinstance(part, ir.Name) and part.id in lists and depth:
                wrapped = ir.Call(part.origin, part, (lists[part.id],), ())
                found |= optimized(wrapped, {}, depth - 1)
    return found


def _first(path: str) -> str:
    """`self.net` of `self.net.encoder`."""
    return ".".join(path.split(".")[:2])


class _Inputs:
    """Whether what a forward is given is data: batches, tensors made of numbers, and plain operations on them."""

    def __init__(self, file: FileAnalysis, facts: FunctionFacts) -> None:
        self.file = file
        self.bound: dict[str, list[ir.Expr | None]] = {}
        self.forwards = {id(forward.call) for forward in facts.forwards if forward.site is not None}
        body = facts.function.body
        loops = [statement for statement in ir.statements(body) if isinstance(statement, (ir.For, ir.While))]
        steps = [inner for loop in loops for inner in (loop, *ir.statements(loop.body))] if loops else body
        # What is bound before the loop is set up once: networks, configurations, buffers.
        self.fresh = {
            target.path
            for inner in ir.statements(steps)
            for target in targets(inner)
            if target.path is not None
        }
        for statement in ir.statements(body):
            for target in targets(statement):
                if target.path is None:
                    continue
                value = statement.value if isinstance(statement, ir.Assign) else None
                self.bound.setdefault(target.path, []).append(value)

    def are_data(self, call: ir.Call) -> bool:
        arguments = (*call.args, *(value for _, value in call.keywords))
        return bool(arguments) and all(self.is_data(arg) for arg in arguments)

    def is_data(self, expr: ir.Expr, seen: frozenset[str] = frozenset()) -> bool:
        """`seen`: the names on the way here, so that `x = x.to(device)` asks only for the other bindings of `x`."""
        if isinstance(expr, (ir.Const, ir.Slice)):
            return True
        if isinstance(expr, ir.Name):
            if expr.id in seen:
                return True
            seen |= {expr.id}
            # What is not bound here is a parameter, or a name of the module; graphs were told by their tokens.
            return all(value is None or self.is_data(value, seen) for value in self.bound.get(expr.id, ()))
        if isinstance(expr, ir.Attr):
            return expr.attr in HOST_ATTRS or self.is_data(expr.base, seen)
        if isinstance(expr, ir.Sub):
            return self.is_data(expr.base, seen)
        if isinstance(expr, ir.Call):
            return self._gives_data(expr, seen)
        return all(self.is_data(child, seen) for child in expr.children())

    def _gives_data(self, call: ir.Call, seen: frozenset[str]) -> bool:
        """A tensor's own operations on data; a call that is given no data; a forward, whose graph is a token."""
        if id(call) in self.forwards:
            return True
        arguments = (*call.args, *(value for _, value in call.keywords))
        if call.method in _PLAIN:
            base = call.func.base if isinstance(call.func, ir.Attr) else None
            owned = base is None or isinstance(base, ir.Name) or self.is_data(base, seen)
            return owned and all(self.is_data(arg, seen) for arg in arguments)
        root = (self.file.names.qualify(call.func.path or "") or "").partition(".")[0]
        if root in frameworks.HOST_LIBRARIES:
            return True
        local = any(
            isinstance(part, ir.Name) and part.id in self.fresh for arg in arguments for part in ir.walk(arg)
        )
        return not local
