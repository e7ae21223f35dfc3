"""Whether nobody steps the weights of a network, nor freezes them: then what a backward makes for them is wasted.

The network is followed by its names: to what makes it, from who hands it over, and to what is given it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import pairs, targets
from gpulint.analysis.code.reading import unwrapped
from gpulint.analysis.file.classes import ClassInfo
from gpulint.analysis.file.frozen_classes import requirement
from gpulint.analysis.file.lookup import called_in_project, class_made, qualified
from gpulint.analysis.file.weights.parameters import Weights, weights_of, weights_of_maker
from gpulint.analysis.questions.grad.freezing import builds_no_graph, switching_words
from gpulint.analysis.questions.grad.frozen_networks import classes_bound, handing
from gpulint.analysis.questions.grad.weights import weights_in_doubt
from gpulint.analysis.torch import frameworks
from gpulint.analysis.torch.methods import WRAPS
from gpulint.analysis.values.arguments import bind_sources
from gpulint.analysis.values.values import Kind
from gpulint.answers import Answer, Question, left_open, proven, refuted

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_DEPTH = 6  # from hand to hand
_PARAMETERS = frozenset("parameters named_parameters get_parameters trainable_parameters".split())
_TENSORS = frozenset({"Parameter", "UninitializedParameter", "Buffer"})
_SWITCHES = frozenset(
    "requires_grad requires_grad_ set_requires_grad freeze unfreeze freeze_parameters toggle_grad step fit "
    "configure_optimizers train_batch add_adapter backward".split()
)
_COUNTS = frozenset("numel nelement next is_cuda device dtype shape norm".split())
_CONTAINERS = frozenset("Module Sequential ModuleList ModuleDict ParameterList ParameterDict".split())
_TENSORS = frozenset({"Parameter", "UninitializedParameter", "Buffer"})
# What a network is given to that leaves its weights as they are.
_HARMLESS = WRAPS | frozenset(
    "print len isinstance issubclass getattr hasattr setattr super id type repr str list tuple save summary info debug watch "
    "load_checkpoint load_state_dict add_graph append callable vars".split()
)


def unstepped(file: FileAnalysis, function: ir.Function, path: str) -> Iterator[Answer]:
    """What the program says about who steps or freezes the weights of a network that a function has under a path."""
    way = _Way()
    way.follow(function, path, _DEPTH)
    if way.refuting or way.open:
        yield from way.refuting or way.open
    elif way.maker is None:
        yield left_open(Question.TRAINED, f"what makes `{path}` is not seen, and may freeze it")
    else:
        clause = f"no optimizer is given the parameters of `{path}`, and nothing freezes it"
        yield proven(Question.TRAINED, clause, way.maker)


def shows_weights(info: ClassInfo) -> bool:
    """Whether a class, or something that its objects hold, is seen to make layers with weights, or a library's network."""
    seen: set[int] = set()
    queue = [(method, _DEPTH) for one in info.ancestors() for method in one.cls.methods.values()]
    while queue:
        function, depth = queue.pop()
        if id(function) in seen:
            continue
        seen.add(id(function))
        for _, call in ir.calls(function.body):
            full = qualified(function.home, function, call.func.path) or ""
            if _makes_network(full) and full.rpartition(".")[2] not in _CONTAINERS:
                return True
            queue += [(one, depth - 1) for one in _makers(function, call)] if depth else ()
    return False


def is_library_network(function: ir.Function, path: str) -> bool:
    """Whether a path is bound to a network of a library, or to a part of one: `judge = vgg16().features[:16]`."""
    values = [
        (scope, _whole(value))
        for scope in _scopes(function, path)
        for statement in ir.statements(scope.body)
        for value in _bound_to(statement, path)
        if value is not None
    ]
    return any(
        isinstance(value, ir.Call) and _makes_network(qualified(scope.home, scope, value.func.path) or "")
        for scope, value in values
    )


def _whole(value: ir.Expr) -> ir.Expr:
    """`vgg16()` of `vgg16().features[:16].eval()`."""
    value = unwrapped(value)
    while isinstance(value, (ir.Attr, ir.Sub)) and value.path is None:
        value = unwrapped(value.base)
    return value


def _makers(function: ir.Function, call: ir.Call) -> list[ir.Function]:
    """The constructor or the function of the project that a call runs."""
    made = class_made(function, call)
    found = made.method("__init__") if made is not None else called_in_project(function, call)
    return [found] if found is not None else []


def _makes_network(full: str) -> bool:
    """Whether a library's name makes a module with weights."""
    last = full.rpartition(".")[2]
    layer = full == f"torch.nn.{last}" and last[:1].isupper() and last not in _TENSORS
    return frameworks.constructor(full) == "module" or (layer and weights_of_maker(full) is Weights.SOME)


class _Way:
    """Follows one network through all of its names."""

    def __init__(self) -> None:
        self.refuting: list[Answer] = []
        self.open: list[Answer] = []
        self.maker: ir.Expr | None = None
        self._seen: set[tuple[int, str]] = set()

    def follow(self, function: ir.Function, path: str, depth: int, onward: bool = False) -> None:
        """`onward`: it is known where it comes from, and only asked what becomes of it."""
        if (id(_room(function, path)), path) in self._seen or self.refuting:
            return
        self._seen.add((id(_room(function, path)), path))
        if not depth:
            self._leave(f"`{path}` goes through too many hands")
            return
        made: list[tuple[ir.Function, ir.Expr | None]] = []
        for scope in _scopes(function, path):
            for statement in ir.statements(scope.body):
                self._use(scope, statement, path, depth)
                made += [(scope, value) for value in _bound_to(statement, path)] if not onward else []
        for scope, value in made:
            self._made(scope, value, path, depth)
        if not made and not onward:
            self._given(function, path, depth)

    # --- where it comes from -------------------------------------------------------------------------------------

    def _made(self, scope: ir.Function, value: ir.Expr | None, path: str, depth: int) -> None:
        if value is None:
            self._leave(f"what `{path}` is, is not seen")
            return
        if any(True for _ in requirement(value)):
            self._refute(f"`{path}` is switched where it is made", value)
        value = _whole(value)
        if value.path is not None:
            if value.path != path:
                self.follow(scope, value.path, depth - 1)
        elif isinstance(value, ir.Call):
            self._called(scope, value, path, depth)
        elif not isinstance(value, ir.Const):
            self._leave(f"what `{path}` is, is not seen")

    def _called(self, scope: ir.Function, call: ir.Call, path: str, depth: int) -> None:
        """A constructor, a loader of a library, or a function of the project that gives the network."""
        home: FileAnalysis = scope.home
        info = class_made(scope, call)
        callee = called_in_project(scope, call) if info is None else None
        full = qualified(home, scope, call.func.path) or ""
        if info is not None:
            self._of_class(home, info, call, path, depth)
        elif callee is not None:
            self._of_function(callee, path, depth)
        elif weights_of_maker(full) is Weights.NONE:
            self._refute(f"`{call.method}` has no parameters", call)
        elif full in frameworks.MAYBE_FROZEN:
            self._leave(frameworks.MAYBE_FROZEN[full])
        elif _makes_network(full):
            self.maker = self.maker or call
        else:
            self._leave(f"`{call.method}`, which makes `{path}`, is not seen: it may freeze it")

    def _of_class(self, home: FileAnalysis, info: ClassInfo, call: ir.Call, path: str, depth: int) -> None:
        init = info.method("__init__")
        if not info.is_module:
            parts = [attr for attr, value in info.attrs.items() if value.kind is Kind.MODULE]
            if init is None or not parts:
                self._leave(f"`{info.cls.name}` is no module that is seen")
                return
            for attr in parts:
                self.follow(init, f"{init.params[0].name}.{attr}", depth - 1)
            return
        if builds_no_graph(info):
            self._refute(f"`{info.cls.name}` switches gradients by itself", call)
        elif weights_of(info) is Weights.NONE:
            self._refute(f"`{info.cls.name}` has no parameters", call)
        elif doubt := weights_in_doubt(home, info):
            self._leave(doubt)
        elif not shows_weights(info):
            self._leave(f"no parameter of `{info.cls.name}` is seen")
        self.maker = self.maker or call

    def _of_function(self, callee: ir.Function, path: str, depth: int) -> None:
        if switching_words((callee,), _SWITCHES):
            self._refute(f"`{callee.name}`, which makes `{path}`, speaks of gradients")
        for statement in ir.statements(callee.body):
            value = statement.value if isinstance(statement, ir.Return) else None
            if isinstance(value, ir.Seq):
                self._leave(f"`{callee.name}` gives several things")
            elif value is not None:
                self._made(callee, value, "", depth - 1)

    def _given(self, function: ir.Function, path: str, depth: int) -> None:
        """Who hands it over: every caller that can be found."""
        if all(param.name != path for param in function.params):
            self._leave(f"what makes `{path}` is not seen")
            return
        home: FileAnalysis = function.home
        others = home.project.files_calling(home.filename, function) if home.project is not None else None
        given = [
            (caller, argument)
            for one in (home, *(others or ()))
            for caller, _, argument in handing(one, function, path)
        ]
        if not given or others is None:
            self._leave(f"whoever hands over `{path}` is not seen, and may step or freeze it")
        ways = [self._of_caller(caller, argument, path, depth - 1) for caller, argument in given]
        refuting = [answer for way in ways for answer in way.refuting]
        if ways and all(way.refuting for way in ways):
            self.refuting += refuting[:1]
        elif refuting:
            self._leave(f"one who hands over `{path}` steps or freezes it")
        for way in ways:
            self.open += [answer for answer in way.open if answer not in self.open]
            self.maker = self.maker or way.maker

    def _of_caller(self, caller: ir.Function, argument: ir.Expr | None, path: str, depth: int) -> _Way:
        way = _Way()
        way._seen = set(self._seen)
        way._made(caller, argument, path, depth)
        return way

    # --- what becomes of it --------------------------------------------------------------------------------------

    def _use(self, scope: ir.Function, statement: ir.Stmt, path: str, depth: int) -> None:
        own = f"{path}."
        if isinstance(statement, ir.Assign):
            for target, value in pairs(statement):
                if unwrapped(value).path == path and target.path not in (None, path):
                    self.follow(scope, target.path or "", depth - 1, onward=True)
                if isinstance(target, ir.Attr) and target.attr == "requires_grad":
                    if f"{target.base.path}.".startswith(own):
                        self._refute(f"`{path}` is switched by hand", target)
        for part in ir.own_parts(statement):
            if isinstance(part, ir.Call):
                self._call(scope, statement, part, path, depth)
            elif isinstance(part, (ir.Seq, ir.DictDisplay)) and not _is_unpacked(statement, part):
                if any(child.path == path for child in part.children()):
                    self._leave(f"`{path}` is put among others, whose parameters somebody may step")

    def _call(self, scope: ir.Function, statement: ir.Stmt, call: ir.Call, path: str, depth: int) -> None:
        owner = unwrapped(call.func.base).path or "" if isinstance(call.func, ir.Attr) else ""
        own = scope.params[0].name if scope.cls is not None and scope.params else ""
        whole = bool(own) and owner == own and path.startswith(f"{own}.")
        if call.method in _PARAMETERS and (whole or f"{owner}.".startswith(f"{path}.")):
            if not _only_counts(statement):
                self._refute(f"the parameters of `{path}` are handed to somebody", call)
        elif call.method in _SWITCHES and f"{owner}.".startswith(f"{path}."):
            self._refute(f"`{path}.{call.method}` may switch or step it", call)
        elif call.method not in _HARMLESS and call.func.path != path:
            given = [*call.args, *(value for _, value in call.keywords)]
            if any(unwrapped(arg).path == path for arg in given):
                self._handed(scope, call, path, depth)

    def _handed(self, scope: ir.Function, call: ir.Call, path: str, depth: int) -> None:
        """What is given the network: a function or a class of the project is followed into."""
        home: FileAnalysis = scope.home
        callee = called_in_project(scope, call)
        info = class_made(scope, call) if callee is None else None
        if info is not None:
            callee = info.method("__init__")
        elif callee is None and call.func.path is not None:
            callee = _method_of_object(home, scope, call)
        if callee is None:
            self._leave(f"`{call.method}`, which is not seen, is given `{path}`: it may step or freeze it")
            return
        for name, source in bind_sources(callee, call, callee.cls is not None).items():
            if unwrapped(source).path == path:
                self.follow(callee, name, depth - 1, onward=True)

    def _refute(self, clause: str, at: ir.Expr | None = None) -> None:
        self.refuting.append(refuted(Question.TRAINED, clause))

    def _leave(self, clause: str) -> None:
        answer = left_open(Question.TRAINED, clause)
        if answer not in self.open:
            self.open.append(answer)


def _scopes(function: ir.Function, path: str) -> list[ir.Function]:
    """The functions in which a path is the same thing: those of the class, of the scope that binds it, or all of the file."""
    home: FileAnalysis = function.home
    head = path.partition(".")[0]
    room = _room(function, path)
    info = home.class_of(function)
    if room is not function and isinstance(room, ir.Class) and info is not None:
        family = [*info.ancestors(), *(one for one in home.classes.values() if info in one.ancestors())]
        methods = [method for one in family for method in one.cls.methods.values()]
        return list(dict.fromkeys(methods))
    body = home.module.body
    if room is body:
        return [one for one in home.module.functions if one is body or not _binds(one, head)]
    return [one for one in home.module.functions if any(scope is room for scope in one.scopes())]


def _room(function: ir.Function, path: str) -> object:
    """Where a name lives: a class for attributes of the object, the function that binds it, or the file's body."""
    home: FileAnalysis = function.home
    head, _, rest = path.partition(".")
    if function.cls is not None and function.params and function.params[0].name == head and rest:
        return function.cls
    return next((scope for scope in function.scopes() if _binds(scope, head)), home.module.body)


def _binds(function: ir.Function, name: str) -> bool:
    home: FileAnalysis = function.home
    return name in home.evidence[function].assigned or any(param.name == name for param in function.params)


def _bound_to(statement: ir.Stmt, path: str) -> Iterator[ir.Expr | None]:
    """What a statement binds a path to, other than what it already is; None where that is not to be seen."""
    direct = False
    for target, value in pairs(statement) if isinstance(statement, ir.Assign) else ():
        if target.path == path:
            direct = True
            if unwrapped(value).path != path and not (isinstance(value, ir.Const) and value.value is None):
                yield value
    if not direct and any(target.path == path for target in targets(statement)):
        yield None  # one of several things


def _only_counts(statement: ir.Stmt) -> bool:
    """`sum(p.numel() for p in net.parameters())`, `next(net.parameters()).device`."""
    inner = [part for one in (statement, *ir.statements([statement])) for part in ir.own_parts(one)]
    words = {
        part.method if isinstance(part, ir.Call) else part.attr
        for part in inner
        if isinstance(part, (ir.Call, ir.Attr))
    }
    return (
        bool(words & _COUNTS)
        and not words & _SWITCHES
        and not any(word.startswith(("Adam", "SGD")) for word in words)
    )


def _is_unpacked(statement: ir.Stmt, part: ir.Expr) -> bool:
    """Whether a display is what a statement binds names to or takes them from, or the input of a call."""
    return isinstance(statement, ir.Return) or (
        isinstance(statement, ir.Assign)
        and (part in statement.targets or any(isinstance(t, ir.Seq) for t in statement.targets))
    )


def _method_of_object(home: FileAnalysis, scope: ir.Function, call: ir.Call) -> ir.Function | None:
    """`forward` of what is called, `self.extract(net, x)`, or the method of an object whose class is seen."""
    owner = call.func.base.path if isinstance(call.func, ir.Attr) else None
    for path, name in ((call.func.path, "forward"), (owner, call.method)):
        classes = [one for one in classes_bound(home, scope, path or "") if isinstance(one, ClassInfo)]
        methods = [one.method(name) for one in classes]
        if len(methods) == 1 and methods[0] is not None:
            return methods[0]
    return None
