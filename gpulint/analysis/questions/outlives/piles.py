"""What becomes of a pile of device tensors: is it of tensors at all, does it end on the host, is it computed with.

The uses of a container are followed through names, loops, comprehensions, attributes, the project's functions and the
callers of a function that returns it. Nothing here follows values: what a use proves, it proves by its text.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.loaded import Chain, chain_of, parents_of
from gpulint.analysis.code.pooling import is_pooling
from gpulint.analysis.code.reading import (
    asks_for_tensor,
    averages,
    compares,
    innermost,
    is_bound,
    is_normalised,
    is_plain,
    is_position,
    is_region,
    number,
    only_of,
    origins,
    picks_column,
    rebinds,
)
from gpulint.analysis.file.facts import Pile
from gpulint.analysis.file.lookup import called, qualified
from gpulint.analysis.questions.outlives.portions import cuts_parts, ends_early, is_placed_elsewhere
from gpulint.analysis.torch import frameworks
from gpulint.analysis.torch.names import (
    HOST_ATTRS,
    JOINS,
    KEEPS_GRAPH,
    PAIRS,
    REDUCTIONS,
    SINK_METHODS,
    TO_DEVICE,
    TO_HOST,
)

if TYPE_CHECKING:
    from gpulint.analysis.file.facts import Hold
    from gpulint.analysis.file.program import FileAnalysis

_TENSOR_METHODS = (KEEPS_GRAPH | REDUCTIONS | PAIRS | TO_DEVICE | {"detach", "cuda"}) - {"type", "append"}
_BINARY = frozenset(
    "add sub mul div true_divide matmul mm bmm mv dot inner outer addmm einsum tensordot cross kron maximum minimum fmax "
    "fmin where eq ne lt le gt ge isin copy_ masked_fill gather index_select scatter scatter_ scatter_add take cdist "
    "cosine_similarity searchsorted bucketize type_as".split()
)
_NEUTRAL = frozenset(
    "len print str repr isinstance type range bool any all id hasattr getattr callable format int float".split()
)
_THROUGH = frozenset(
    "list tuple sorted reversed dict set iter next sum zip enumerate map filter tqdm".split()
)
_LIST_METHODS = frozenset(
    "append extend insert clear pop popleft appendleft remove sort reverse index count update add setdefault "
    "register_buffer __len__ size dim numel".split()
)
_TO_ONE = frozenset("norm sum logsumexp gather amax amin prod std var".split())
_VIEWS = frozenset("items values keys get copy".split())
_ARRAY_LIBRARIES = frozenset(
    "numpy scipy pandas sklearn matplotlib seaborn PIL cv2 skimage nltk evaluate sacrebleu json math statistics".split()
)
_BOOKKEEPING = frozenset("logging warnings os sys time gc re".split())
_TENSOR_FIELDS = frozenset(
    "logits last_hidden_state pooler_output image_embeds text_embeds pred_masks sample image_features".split()
)
_LAYERS = frozenset("attentions hidden_states cross_attentions".split())  # tuples of tensors
_DEEP = 4


@dataclass(frozen=True, slots=True)
class _Place:
    """A name in a function, or an attribute anywhere in a file, that stands for the pile from a statement on."""

    file: FileAnalysis
    function: ir.Function | None  # None for an attribute
    path: str
    start: int = -1
    depth: int = 0
    joined: bool = False  # one tensor by now, no container of them


def judge(file: FileAnalysis, hold: Hold) -> Pile:
    """Follow what is held and the place that holds it."""
    search = _Search(file)
    home, function = file, hold.function
    if hold.place.how == "join":
        search.joined(hold)
        return search.found
    path = hold.place.holder
    if hold.place.keep is not None and hold.place.keep.filename is None and hold.place.keep.into == "self":
        function = hold.place.keep.function
        path = f".{hold.place.keep.holder}"
    attribute = "." in path
    search.follow(_Place(home, None if attribute else function, _plain(path, attribute)))
    for leaf in hold.leaves or ((hold.given,) if hold.given is not None else ()):
        search.kept(hold.function, leaf)
    search.found.elsewhere = is_placed_elsewhere(file, hold.function)
    search.found.few = any(ends_early(loop.stmt) for loop in hold.rounds.loops)
    search.found.parts = any(cuts_parts(hold.function, loop.stmt, hold.leaves) for loop in hold.rounds.loops)
    return search.found


def uses_of(file: FileAnalysis, function: ir.Function | None, path: str) -> Pile:
    """What the uses of a place say, whatever fills it: of a name in a function, or of an attribute, where that is None."""
    search = _Search(file)
    search.follow(_Place(file, function, path))
    return search.found


def _plain(path: str, attribute: bool) -> str:
    path = path.partition("[")[0]
    return path.rpartition(".")[2] if attribute else path


class _Search:
    def __init__(self, file: FileAnalysis) -> None:
        self.file = file
        self.found = Pile()
        self._again = False  # the name that is followed is bound anew to what it was
        self._seen: set[tuple[int, str]] = set()
        self._returning: set[tuple[int, int]] = set()

    # --- what is kept --------------------------------------------------------------------------------------------

    def kept(self, function: ir.Function, leaf: ir.Expr) -> None:
        """What the expression that is kept, and the name it may be, prove about it."""
        self._prove(function, leaf)
        current = innermost(leaf)
        texts = [leaf, *origins(function, current)]
        self.found.small |= any(map(compares, texts)) and any(map(averages, texts))
        if not isinstance(current, ir.Name):
            return
        for statement in ir.statements(function.body):
            if isinstance(statement, ir.Assign) and statement.value is not None:
                if any(target.path == current.id for target in statement.targets):
                    self._prove(function, statement.value)
            parents: dict[int, ir.Expr] | None = None
            for expr in ir.own_parts(statement):
                if isinstance(expr, ir.Name) and expr.id == current.id:
                    parents = parents_of(statement) if parents is None else parents
                    self._kept_use(function, expr, chain_of(expr, parents))

    def _prove(self, function: ir.Function, expr: ir.Expr) -> None:
        """`model(x).softmax(-1)`, `out[:, 0]`, `out.logits`: tensors, whatever the model is."""
        while True:
            func = expr.func if isinstance(expr, ir.Call) else None
            if isinstance(expr, ir.Call) and isinstance(func, ir.Attr):
                root = qualified(self.file, self.file.module.body, func.path) or ""
                if root.startswith("torch."):
                    self._reduced(function, expr, expr.args[1:])
                    self.found.tensor |= expr.method in JOINS | _TENSOR_METHODS
                    if not expr.args:
                        return
                    expr = expr.args[0]
                    continue
                if expr.method not in _TENSOR_METHODS:
                    return
                self._reduced(function, expr, expr.args)
                self.found.tensor = True
                expr = func.base
            elif isinstance(expr, ir.Sub):
                self.found.tensor |= is_region(expr.index)
                self.found.small |= picks_column(expr.index) and is_normalised(expr.base)
                self.found.tensor |= isinstance(expr.base, ir.Attr) and expr.base.attr in _LAYERS
                if isinstance(expr.base, ir.Call) and expr.base.method in PAIRS and expr.base.args:
                    self.found.small = True  # `out.max(1)[0]`
                expr = expr.base
            elif isinstance(expr, ir.Attr):
                self.found.tensor |= expr.attr in _TENSOR_FIELDS
                if isinstance(expr.base, ir.Call) and expr.base.method in PAIRS:
                    self.found.small = True
                expr = expr.base
            else:
                return

    def _kept_use(self, function: ir.Function, use: ir.Expr, chain: Chain) -> None:
        around = chain[0] if chain else None
        if isinstance(around, ir.Attr) and around.base is use:
            outer = chain[1] if len(chain) > 1 else None
            if isinstance(outer, ir.Call) and outer.func is around:
                self.found.tensor |= around.attr in _TENSOR_METHODS
            else:
                self.found.tensor |= around.attr in HOST_ATTRS
        elif isinstance(around, ir.Sub) and around.base is use:
            self.found.tensor |= is_region(around.index)
        elif isinstance(around, ir.Call) and use in around.args:
            root = (qualified(self.file, function, around.func.path) or "").partition(".")[0]
            asked = around.method == "isinstance" and not asks_for_tensor(around)
            self.found.host |= root in _ARRAY_LIBRARIES or asked

    def joined(self, hold: Hold) -> None:
        """`torch.cat([model(x) for x in loader])`: what becomes of the tensor that is made of the list."""
        function, statement = hold.function, hold.stmt
        call = hold.call
        assert call is not None
        position = next((n for n, s in enumerate(ir.statements(function.body)) if s is statement), -1)
        place = _Place(self.file, function, "", -1, 0, joined=True)
        self.found.tensor = True
        self._trace(place, call, chain_of(call, parents_of(statement)), statement, position)
        for leaf in hold.leaves:
            self.kept(function, leaf)
        self.found.elsewhere = is_placed_elsewhere(self.file, function)
        self.found.few = any(ends_early(loop.stmt) for loop in hold.rounds.loops)
        self.found.parts = any(
            cuts_parts(hold.function, loop.stmt, hold.leaves) for loop in hold.rounds.loops
        )

    # --- what holds it -------------------------------------------------------------------------------------------

    def follow(self, place: _Place) -> None:
        key = (id(place.function) if place.function is not None else id(place.file), place.path)
        if key in self._seen or place.depth > _DEEP:
            self.found.unseen |= place.depth > _DEEP
            return
        self._seen.add(key)
        attribute = place.function is None
        functions = place.file.module.functions if place.function is None else [place.function]
        for function in functions:
            if attribute and place.path not in place.file.evidence[function].words:
                continue
            here = replace(place, function=function)
            for position, statement in enumerate(ir.statements(function.body)):
                if position <= place.start:
                    continue
                self._again = False
                read = self._uses(here, statement, position, attribute)
                if read and not attribute and not self._again and rebinds(statement, place.path):
                    break  # `outs = torch.cat(outs).cpu()`: from here on the name is something else's

    def _uses(self, place: _Place, statement: ir.Stmt, position: int, attribute: bool) -> bool:
        """Follow each use in a statement; says whether there is any."""
        parents: dict[int, ir.Expr] | None = None
        for expr in ir.own_parts(statement):
            same = (
                isinstance(expr, ir.Attr) and expr.attr == place.path
                if attribute
                else isinstance(expr, ir.Name) and expr.id == place.path
            )
            if not same or is_bound(statement, expr):
                continue
            if parents is None:
                parents = parents_of(statement)
            self._trace(place, expr, chain_of(expr, parents), statement, position)
        return parents is not None

    def _trace(self, place: _Place, use: ir.Expr, chain: Chain, statement: ir.Stmt, position: int) -> None:
        """Follow a use outwards to where its statement puts it."""
        current = use
        for around in chain:
            if not self._goes_on(place, current, around, statement, position):
                return
            if isinstance(around, ir.Call) and around.method in JOINS | _TENSOR_METHODS:
                place = replace(place, joined=True)
            current = around
        self._arrive(place, current, statement, position)

    def _goes_on(
        self, place: _Place, current: ir.Expr, around: ir.Expr, statement: ir.Stmt, position: int
    ) -> bool:
        """Whether what is around the expression still is, or holds, what the pile keeps."""
        if isinstance(around, ir.Sub):
            if around.base is not current:
                return False
            self.found.tensor |= is_region(around.index)
            self.found.on_device |= place.joined and not is_position(around.index)
            return True
        if isinstance(around, ir.Attr):
            return around.attr not in HOST_ATTRS
        if isinstance(around, ir.Call):
            if around.func is current:
                return self._method(place, around)
            return self._argument(place, current, around)
        if isinstance(around, ir.Op):
            return self._operator(current, around)
        if isinstance(around, ir.Comp):
            return self._comprehension(place, current, around, statement, position)
        if isinstance(around, ir.Wrapper) and around.kind.startswith("yield"):
            self._return(place)
            return False
        return isinstance(around, (ir.Seq, ir.DictDisplay, ir.Wrapper, ir.Walrus))

    def _method(self, place: _Place, call: ir.Call) -> bool:
        name = call.method
        if name in ("cpu", "numpy", "tolist", "item"):
            self.found.tensor = self.found.to_host = True
            self.found.host |= (
                name == "numpy" and not call.keywords
            )  # torch refuses that for what is on a GPU
            self.found.small |= name == "tolist" and not place.joined  # nobody makes lists of large outputs
            return False
        if name in _VIEWS:
            return True
        if name in _LIST_METHODS or name in TO_HOST:
            return False
        if name == "to":
            return self._moved(call)
        if name == "cuda":
            self.found.on_device = True
            return False
        if name in _TENSOR_METHODS:
            self.found.tensor = True
            self.found.small |= name in ("long", "int")  # what is read as ids was ids before
            self._flattened(call, call.args)
            self.found.on_device |= name in _BINARY and not all(map(is_plain, call.args))
            return not self._is_total(call, call.args)
        self._lose(place)
        return False

    def _moved(self, call: ir.Call) -> bool:
        places = (*call.args, *(value for _, value in call.keywords))
        if any(isinstance(place, ir.Const) and place.value == "cpu" for place in places):
            self.found.tensor = self.found.to_host = True
            return False
        kinds = [qualified(self.file, self.file.module.body, place.path) or "" for place in places]
        self.found.on_device |= not any(kind.startswith("torch.") for kind in kinds)
        return not self.found.on_device

    def _is_total(self, call: ir.Call, rest: tuple[ir.Expr, ...]) -> bool:
        """A sum or mean of all there is: one number, on whatever device."""
        if call.method not in REDUCTIONS | {"max", "min", "median", "any", "all"} or rest:
            return False
        if any(name in ("dim", "axis") for name, _ in call.keywords):
            return False
        self.found.to_host = True
        # `torch.stack(losses).mean()`: of batches of several sizes only numbers can be stacked.
        stacked = (*call.args[:1], call.func.base if isinstance(call.func, ir.Attr) else call)
        self.found.small |= any(isinstance(part, ir.Call) and part.method == "stack" for part in stacked)
        return True

    def _argument(self, place: _Place, current: ir.Expr, call: ir.Call) -> bool:
        name, assert_function = call.method, place.function
        assert assert_function is not None
        full = qualified(place.file, assert_function, call.func.path) or ""
        root = full.partition(".")[0]
        if root == "torch":
            return self._torch_call(current, call, full)
        if root in _ARRAY_LIBRARIES:
            self.found.host = True  # they refuse what is on the GPU
            return False
        if root in frameworks.HOST_LIBRARIES or root in _BOOKKEEPING:
            self.found.to_host |= name == "dump"
            self.found.on_device |= (
                root in ("itertools", "functools", "collections") and name != "OrderedDict"
            )
            return False
        if isinstance(call.func, ir.Name) and not full:
            if name in _NEUTRAL:
                return False
            if name in _THROUGH:
                return True
        if isinstance(call.func, ir.Attr) and name in _LIST_METHODS:
            self._stored_in(place, call.func.base)
            return False
        if name in SINK_METHODS or name in frameworks.SINKS:
            return False
        return self._project_call(place, current, call, full)

    def _stored_in(self, place: _Place, base: ir.Expr) -> None:
        """`all_features.append(features)`: another container holds it now."""
        while isinstance(base, (ir.Sub, ir.Call)):
            base = base.base if isinstance(base, ir.Sub) else base.func
        if isinstance(base, ir.Name):
            self.follow(_Place(place.file, place.function, base.id, -1, place.depth + 1))
        elif isinstance(base, ir.Attr):
            self.follow(_Place(place.file, None, base.attr, -1, place.depth + 1))

    def _torch_call(self, current: ir.Expr, call: ir.Call, full: str) -> bool:
        name = call.method
        if full == "torch.save":
            self.found.tensor = self.found.to_host = True  # what is no tensor is saved by other means
            return False
        if full.startswith(("torch.distributed", "torch.nn.parallel")):
            self.found.on_device = True
            return False
        if name in ("is_tensor", "numel"):
            return False
        self.found.tensor = True
        if name in JOINS:
            return True
        others = tuple(arg for arg in call.args if arg is not current)
        self._flattened(call, others)
        self.found.on_device |= not all(map(is_plain, others)) and not full.endswith(("softmax", "normalize"))
        return not self._is_total(call, others)

    def _project_call(self, place: _Place, current: ir.Expr, call: ir.Call, full: str) -> bool:
        """A function of the project: what it does with its parameter; of anything else, nothing is known."""
        assert place.function is not None
        function = called(place.file, place.function, call)
        if function is None and full:
            value = place.file.imported_value(full)
            function = value.ref if value is not None and isinstance(value.ref, ir.Function) else None
        if function is None or place.depth >= _DEEP:
            self._lose(place)
            return False
        names = [param.name for param in function.params if param.kind == "normal"]
        if function.cls is not None and isinstance(call.func, ir.Attr):
            names = names[1:]
        given = [name for name, arg in zip(names, call.args, strict=False) if arg is current]
        given += [name for name, value in call.keywords if value is current and name is not None]
        if len(given) != 1:
            self._lose(place)
            return False
        inner = _Search(function.home)
        inner._seen, inner._returning = self._seen, self._returning | {(id(function), 0)}
        inner.follow(_Place(function.home, function, given[0], -1, place.depth + 1, place.joined))
        for field in ("tensor", "host", "small", "to_host", "on_device", "unseen"):
            setattr(self.found, field, getattr(self.found, field) or getattr(inner.found, field))
        return inner.found.returned

    def _lose(self, place: _Place) -> None:
        """It goes out of sight: right here, where it may be computed with, or in some caller's caller, where that says
        nothing against what others do with it."""
        if place.depth > 1:
            self.found.unseen = True
        else:
            self.found.on_device = True

    def _operator(self, current: ir.Expr, around: ir.Op) -> bool:
        op = around.op
        if op == "if":
            return around.operands[0] is not current
        if op in ("not", "is", "is not", "in", "not in"):
            return False
        if op in ("and", "or", "neg"):
            return True
        others = [operand for operand in around.operands if operand is not current]
        if any(isinstance(other, (ir.Seq, ir.Comp)) for other in others):
            return True  # two lists joined
        names = {part.id for part in ir.walk(current) if isinstance(part, ir.Name)}
        foreign = any(not is_plain(other) and not only_of(other, names) for other in others)
        self.found.on_device |= foreign
        return not foreign

    def _comprehension(
        self, place: _Place, current: ir.Expr, around: ir.Comp, statement: ir.Stmt, position: int
    ) -> bool:
        """Over the pile: go on with its elements where they are used."""
        targets = [target for target, iterable, _ in around.clauses if iterable is current]
        if not targets:
            return any(element is current for element in around.elements)
        names = {part.id for target in targets for part in ir.walk(target) if isinstance(part, ir.Name)}
        parents = parents_of(statement)
        parts = [
            *around.elements,
            *(iterable for _, iterable, _ in around.clauses if iterable is not current),
        ]
        for part in parts:
            for expr in ir.walk(part):
                if isinstance(expr, ir.Name) and expr.id in names:
                    if around.kind == "dict" and expr is around.elements[0]:
                        continue
                    self._trace(place, expr, chain_of(expr, parents), statement, position)
        return False

    def _reduced(self, function: ir.Function, call: ir.Call, rest: tuple[ir.Expr, ...]) -> None:
        """What is kept went through `squeeze(1)`, `max(1)`, `sum(-1)`: for all that can be seen, one number is left of
        each sample."""
        self._flattened(call, rest)
        if (call.method in PAIRS or call.method in _TO_ONE) and not is_pooling(function, call):
            by = [value for key, value in call.keywords if key in ("dim", "axis")]
            self.found.small |= bool({1, -1} & {number(arg) for arg in (*rest, *by)})

    def _flattened(self, call: ir.Call, rest: tuple[ir.Expr, ...]) -> None:
        """`squeeze(1)`, `view(-1)`, `flatten()`: what has one number for each sample, as far as anybody can tell."""
        sizes = [number(arg) for arg in rest]
        if call.method in ("squeeze", "squeeze_"):
            self.found.small |= sizes in ([], [1], [-1])
        elif call.method in ("view", "reshape"):
            self.found.small |= sizes in ([-1], [-1, 1])
        elif call.method in ("ravel", "flatten"):
            self.found.small |= not rest and not call.keywords

    # --- where it goes -------------------------------------------------------------------------------------------

    def _arrive(self, place: _Place, current: ir.Expr, statement: ir.Stmt, position: int) -> None:
        if isinstance(statement, ir.Return):
            self._return(place)
        elif isinstance(statement, ir.Assign):
            for target in statement.targets:
                self._bound(place, target, position)
        elif isinstance(statement, ir.AugAssign):
            if current is statement.value:
                self._bound(place, statement.target, position)
        elif isinstance(statement, ir.For) and current is statement.iterable:
            self._bound(place, statement.target, position)

    def _bound(self, place: _Place, target: ir.Expr, position: int) -> None:
        if isinstance(target, ir.Seq):
            for item in target.items:
                self._bound(place, item, position)
            return
        while isinstance(target, (ir.Sub, ir.Wrapper)):
            target = target.base if isinstance(target, ir.Sub) else target.value
        if isinstance(target, ir.Name):
            if target.id == place.path:
                self._again = True
                return
            again = self._again
            here = replace(place, path=target.id, start=position)
            self.follow(here)
            self._again = again
        elif isinstance(target, ir.Attr):
            self.follow(_Place(place.file, None, target.attr, -1, place.depth + 1, place.joined))

    def _return(self, place: _Place) -> None:
        """The callers, in this file and in the others of the project, say what becomes of it."""
        function = place.function
        assert function is not None
        if (id(function), 0) in self._returning:
            self.found.returned = True
            return
        self._returning.add((id(function), 0))
        if place.depth >= _DEEP:
            self.found.unseen = True
            return
        sites = _call_sites(place.file, function)
        self.found.returned |= not sites
        for file, caller, position, statement, call in sites:
            here = _Place(file, caller, "", -1, place.depth + 1, place.joined)
            self._trace(here, call, chain_of(call, parents_of(statement)), statement, position)


_Site = tuple["FileAnalysis", ir.Function, int, ir.Stmt, ir.Call]


def _call_sites(file: FileAnalysis, function: ir.Function) -> list[_Site]:
    """The calls by a function's name, tests left out. Where too many files call something of that name, most of them
    call something else: then only those of its own file."""
    files = [file]
    if file.project is not None and function.name != "<module>":
        files += file.project.files_calling(file.filename, function) or []
    found: list[_Site] = []
    for other in files:
        for caller in other.module.functions:
            if function.name not in other.evidence[caller].called or caller is function:
                continue
            for position, statement in enumerate(ir.statements(caller.body)):
                for call in ir.own_calls(statement):
                    if call.method == function.name:
                        found.append((other, caller, position, statement, call))
    return found
