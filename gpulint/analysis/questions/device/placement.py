"""Where a model lives: whether the program itself puts it on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.file.lookup import called_in_project, qualified, template
from gpulint.analysis.questions.device.origins import bindings, device_of_move, is_cpu
from gpulint.analysis.questions.outlives.through_steps import run_by
from gpulint.analysis.questions.size.defaults import setting
from gpulint.analysis.torch.methods import STAYS_IN_PLACE

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_HOST = ("cpu", "meta", "mps", "xpu", "npu", "hpu")


def on_gpu(file: FileAnalysis, function: ir.Function, path: str, speaks_of_cuda: bool) -> bool:
    """Whether the program moves a model, or what it is part of, to a GPU, anywhere that can be seen from this function.

    Seen are the function and those around it, the methods of the class for an attribute, the callers in this file for
    what the function returns and for its parameters. Where a file does not speak of CUDA itself, what a model is moved to
    must be called a device.
    """
    search = _Search(speaks_of_cuda)
    return search.moved(function, path) and not (
        search.brought_back(function, path) or is_returned_on_host(function, path)
    )


def is_returned_on_host(function: ir.Function, path: str) -> bool:
    """Whether a name is only bound to what functions of the project hand out after they have moved it to the host, and the
    function itself moves it nowhere: `net = client.train(net)`, which ends with `net.cpu(); return net`."""
    pairs = [(value, None) for value in _bound(function, path)] + list(_parts(function, path))
    bound = [(value, place) for value, place in pairs if not isinstance(value, ir.Const)]
    if not bound or any(
        call_moves(call) and isinstance(call.func, ir.Attr) and _object(call.func.base).path == path
        for _, call in ir.calls(function.body)
    ):
        return False
    return all(
        isinstance(value, ir.Call) and _returns_from_host(function, value, place) for value, place in bound
    )


def _returns_from_host(function: ir.Function, call: ir.Call, place: int | None) -> bool:
    """Whether all that a call may hand out, or all at a place in it, has been moved to the host last."""
    callee = run_by(function, call)
    if callee is None:
        return False
    given = [statement.value for statement in ir.statements(callee.body) if isinstance(statement, ir.Return)]
    if place is not None:
        given = [
            value.items[place] if isinstance(value, ir.Seq) and place < len(value.items) else None
            for value in given
        ]
    return bool(given) and all(value is not None and _ends_on_host(callee, value) for value in given)


def _ends_on_host(function: ir.Function, value: ir.Expr) -> bool:
    """`net.cpu()`, and `net` where the last move in its function is one to the host, which every call comes by."""
    bound = bindings(function)
    if isinstance(value, ir.Call):
        return _moves_to_host(value, bound)
    moves = [
        (statement, call)
        for statement, call in ir.calls(function.body)
        if isinstance(call.func, ir.Attr)
        and (call_moves(call) or call.method == "cpu")
        and _object(call.func.base).path == value.path
    ]
    return bool(moves) and moves[-1][0] in function.body and _moves_to_host(moves[-1][1], bound)


def _moves_to_host(call: ir.Call, bound: dict[str, list[ir.Expr | None]]) -> bool:
    return call.method == "cpu" or (call.method == "to" and is_cpu(device_of_move(call), bound))


def is_gpu(file: FileAnalysis, function: ir.Function, device: ir.Expr | None, depth: int = 4) -> bool | None:
    """Whether a device can be a GPU: `"cuda"` in any branch of what it is bound to. None where nothing is known of it."""
    if device is None or not depth:
        return None
    text = template(device)
    if text is not None:
        return text.startswith("cuda") or (None if text.startswith("{}") else False)
    if isinstance(device, ir.Const):
        return isinstance(device.value, int) and not isinstance(device.value, bool)
    if isinstance(device, ir.Op) and device.op in ("if", "or"):
        branches = device.operands[1:] if device.op == "if" else device.operands
        return _any(is_gpu(file, function, branch, depth - 1) for branch in branches)
    if isinstance(device, ir.Call):
        if qualified(file, function, device.func.path) == "torch.device" and device.args:
            return is_gpu(file, function, device.args[0], depth - 1)
        return None
    if device.path is None:
        return None
    if (qualified(file, function, device.path) or "").startswith("torch."):
        return False  # a type of numbers
    found = list(_values(file, function, device))
    if not found and isinstance(device, ir.Attr):
        return _is_gpu_setting(file, device.path, device.attr, depth - 1)
    return _any(is_gpu(file, scope, value, depth - 1) for scope, value in found)


def _is_gpu_setting(file: FileAnalysis, path: str, name: str, depth: int) -> bool | None:
    """Whether a setting is made a GPU, `args.device = torch.device("cuda")`, or is one unless something else is asked for:
    `device: str = "cuda"` of a class of the file, or the default of a command line. Who has the CPU for a default, or falls
    back on it, may still be given a GPU."""
    for other, evidence in file.evidence.items():
        if path in evidence.stored and any(
            is_gpu(file, other, value, depth) for value in _bound(other, path)
        ):
            return True
    values = [
        value.value
        for cls in file.module.classes.values()
        for value in _bound_in(cls.body, name)
        if isinstance(value, ir.Const)
    ]
    return True if any(str(value).startswith("cuda") for value in (*values, setting(file, name))) else None


def _any(answers: Iterator[bool | None]) -> bool | None:
    """True where one answer is, False where all are, None else."""
    found = list(answers)
    if any(found):
        return True
    return False if found and all(answer is False for answer in found) else None


def _values(
    file: FileAnalysis, function: ir.Function, place: ir.Expr
) -> Iterator[tuple[ir.Function, ir.Expr | None]]:
    """What a name or an attribute of the object is bound to, with the function that does it."""
    path = place.path or ""
    head, _, rest = path.partition(".")
    if rest:
        for method in _methods(file, function, head):
            own = method.params[0].name if method.params else ""
            yield from ((method, value) for value in _bound(method, f"{own}.{rest}"))
        return
    for scope in function.scopes():
        if path in file.evidence[scope].assigned:
            yield from ((scope, value) for value in _bound(scope, path))
            return
        for param in scope.params:
            if param.name == path:
                yield scope, param.default
                return


def _bound(function: ir.Function, path: str) -> Iterator[ir.Expr]:
    """The values that a function binds to a place; pairs are taken apart."""
    return _bound_in(function.body, path)


def _bound_in(body: list[ir.Stmt], path: str) -> Iterator[ir.Expr]:
    for statement in ir.statements(body):
        if isinstance(statement, ir.Assign) and statement.value is not None:
            for target in statement.targets:
                if target.path == path:
                    yield statement.value
                elif isinstance(target, ir.Seq) and isinstance(statement.value, ir.Seq):
                    for part, value in zip(target.items, statement.value.items, strict=False):
                        if part.path == path:
                            yield value


def _methods(file: FileAnalysis, function: ir.Function, head: str) -> list[ir.Function]:
    """The methods that share the object which `head` names in this function."""
    method = function.method
    if method is None or not method.params or method.params[0].name != head:
        return []
    info = file.class_of(method)
    if info is None:
        return []
    return [method for part in info.ancestors() if part.home is file for method in part.cls.methods.values()]


class _Search:
    """Follows a model through the names that it has, into the functions that make it as well. Each question is asked once."""

    def __init__(self, speaks_of_cuda: bool) -> None:
        self.speaks_of_cuda = speaks_of_cuda
        self.asked: set[tuple[ir.Function, str]] = set()

    def moved(self, function: ir.Function, path: str) -> bool:
        if (function, path) in self.asked or len(self.asked) > 60:
            return False
        self.asked.add((function, path))
        head, _, rest = path.partition(".")
        methods = [method for method in _methods(function.home, function, head) if method.params]
        if methods:
            return self._object_moved(function, methods, rest)
        return (
            self._moved_in(function, path)
            or self._by_its_callers(function, head)
            or self._part_of_module(function)
        )

    def _object_moved(self, function: ir.Function, methods: list[ir.Function], rest: str) -> bool:
        """Whether a method of the object moves its attribute, or, where it is a module, the object itself."""
        info = function.home.class_of(function)
        for method in methods:
            own = method.params[0].name
            if rest and self._moved_in(method, f"{own}.{rest}"):
                return True
            if (not rest or (info is not None and info.is_module)) and self._moved_in(method, own):
                return True
        if info is None or not info.is_module:
            return False
        return (info.is_lightning and self.speaks_of_cuda) or any(_feeds_gpu(method) for method in methods)

    def _part_of_module(self, function: ir.Function) -> bool:
        """What a module's constructor builds goes where the module goes: to the GPU, where its methods send their inputs."""
        info = function.home.class_of(function) if function.name == "__init__" else None
        if info is None or not info.is_module:
            return False
        feeds = any(_feeds_gpu(method) for method in info.cls.methods.values())
        return feeds or (info.is_lightning and self.speaks_of_cuda)

    def _moved_in(self, function: ir.Function, path: str) -> bool:
        """Whether the function, or one around it, moves the place, or binds it to something that is on a GPU."""
        head, _, rest = path.partition(".")
        parts = rest.split(".") if rest else []
        names = {".".join((head, *parts[:count])) for count in range(1 if parts else 0, len(parts) + 1)}
        if not _methods(function.home, function, head):
            names.add(head)
        for scope in function.scopes():
            if any(self._moves(scope, call, names) for _, call in ir.calls(scope.body)):
                return True
            for name in names:
                if any(self._made_on_gpu(scope, value) for value in _bound(scope, name)):
                    return True
                if any(self._returned_on_gpu(scope, call, place) for call, place in _parts(scope, name)):
                    return True
            if head in scope.home.evidence[scope].assigned or any(p.name == head for p in scope.params):
                return False
        return False

    def _moves(self, function: ir.Function, call: ir.Call, names: set[str]) -> bool:
        if call.method not in ("cuda", "to") or not isinstance(call.func, ir.Attr):
            return False
        return _object(call.func.base).path in names and self._to_gpu(function, call)

    def _to_gpu(self, function: ir.Function, call: ir.Call) -> bool:
        """`.cuda()`, or `.to(device)` with a device of which nothing says that it is none."""
        if call.method == "cuda":
            return True
        device = call.argument(0, "device")
        if device is None:
            return False
        known = is_gpu(function.home, function, device)
        if known is None and not self.speaks_of_cuda:
            return "device" in (device.path or "")
        return known is not False

    def _made_on_gpu(self, function: ir.Function, value: ir.Expr) -> bool:
        """`Net().to(device)`, `DDP(net.cuda())`, `DDP(net)` of a net that is moved, `Net(device="cuda")`."""
        if isinstance(value, (ir.Name, ir.Attr)) and value.path is not None:
            return self.moved(function, value.path)
        if not isinstance(value, ir.Call):
            return False
        if call_moves(value) and isinstance(value.func, ir.Attr) and self._to_gpu(function, value):
            return True
        device = value.keyword("device")
        if device is not None and is_gpu(function.home, function, device):
            return True
        if isinstance(value.func, ir.Attr) and value.method in STAYS_IN_PLACE:
            return self._made_on_gpu(function, value.func.base)
        if self._returned_on_gpu(function, value, None):
            return True
        wrapped = value.args[:1] if value.method[:1].isupper() or value.method == "compile" else ()
        return any(self._made_on_gpu(function, part) for part in wrapped)

    def _returned_on_gpu(self, function: ir.Function, call: ir.Call, place: int | None) -> bool:
        """Whether a function of the project, `model = build(args)`, hands out what it has moved itself: as all of its result,
        or at a place in it."""
        callee = called_in_project(function, call)
        for statement in ir.statements(callee.body) if callee is not None else ():
            value = statement.value if isinstance(statement, ir.Return) else None
            if place is not None:
                value = value.items[place] if isinstance(value, ir.Seq) and place < len(value.items) else None
            if callee is not None and value is not None and self._made_on_gpu(callee, value):
                return True
        return False

    def _by_its_callers(self, function: ir.Function, name: str) -> bool:
        """Whether a caller in this file moves what it gets from the function, or hands over what it has moved."""
        position = next((i for i, param in enumerate(function.params) if param.name == name), None)
        returned = any(
            isinstance(statement, ir.Return)
            and statement.value is not None
            and any(part.path == name for part in _results(statement.value))
            for statement in ir.statements(function.body)
        )
        if function.cls is not None or not (returned or position is not None):
            return False
        for caller, statement, call in calls_of(function.home, function):
            if returned and isinstance(statement, ir.Assign) and statement.value is call:
                parts = [
                    part
                    for target in statement.targets
                    for part in (target.items if isinstance(target, ir.Seq) else (target,))
                ]
                if any(part.path is not None and self.moved(caller, part.path) for part in parts):
                    return True
            if position is not None:
                given = call.argument(position, name)
                if given is not None and self._made_on_gpu(caller, given):
                    return True
        return False

    def brought_back(self, function: ir.Function, path: str) -> bool:
        """Whether the function itself moves the model to the host."""
        for _, call in ir.calls(function.body):
            if isinstance(call.func, ir.Attr) and _object(call.func.base).path == path:
                if call.method == "cpu":
                    return True
                if (
                    call.method == "to"
                    and is_gpu(function.home, function, call.argument(0, "device")) is False
                ):
                    return isinstance(call.argument(0, "device"), ir.Const)
        return False


def _parts(function: ir.Function, path: str) -> Iterator[tuple[ir.Call, int]]:
    """The calls whose results a function takes apart, one of them under this name, and at which place: `net, size = build()`."""
    for statement in ir.statements(function.body):
        if isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Call):
            for target in statement.targets:
                for place, item in enumerate(target.items if isinstance(target, ir.Seq) else ()):
                    if item.path == path:
                        yield statement.value, place


def call_moves(call: ir.Call) -> bool:
    return call.method in ("cuda", "to")


def _object(expr: ir.Expr) -> ir.Expr:
    """`model` of `model.eval()`."""
    while isinstance(expr, ir.Call) and isinstance(expr.func, ir.Attr) and expr.method in STAYS_IN_PLACE:
        expr = expr.func.base
    return expr


def _results(value: ir.Expr) -> tuple[ir.Expr, ...]:
    return value.items if isinstance(value, ir.Seq) else (_object(value),)


def calls_of(file: FileAnalysis, function: ir.Function) -> Iterator[tuple[ir.Function, ir.Stmt, ir.Call]]:
    """The calls of a function by its name in this file, or by another name that it is given: `load = load_net`."""
    for name in dict.fromkeys((function.name, *file.call_sites.other_names.get(function.name, ()))):
        for site in file.calls_named(name):
            if isinstance(site.call.func, ir.Name):
                yield site.caller, site.statement, site.call


def _feeds_gpu(method: ir.Function) -> bool:
    """Whether a method moves what it works with to a GPU, whatever a flag may say."""
    return any(
        _is_unconditional(method.body, call) for _, call in ir.calls(method.body) if call.method == "cuda"
    )


def _is_unconditional(block: list[ir.Stmt], call: ir.Call) -> bool:
    for statement in block:
        if any(call is other for other in ir.own_calls(statement)):
            return not isinstance(statement, ir.If)
        if isinstance(statement, (ir.If, ir.Try, ir.Match)):
            continue
        if any(_is_unconditional(inner, call) for inner in statement.blocks()):
            return True
    return False
