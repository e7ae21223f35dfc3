"""What the analysis found out about a file: everything a rule may ask. Nodes are nodes of the file's own tree."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gpulint.analysis.code import ir
from gpulint.analysis.code.slots import counts_given
from gpulint.analysis.values.values import Grad

if TYPE_CHECKING:
    from gpulint.analysis.values.values import Site, Tokens, Val


@dataclass(slots=True)
class Loop:
    """A `for` or `while`, with what its body does directly, nested loops left out."""

    stmt: ir.For | ir.While
    function: ir.Function
    parent: Loop | None = None
    resets: frozenset[str] = frozenset()
    assigned: frozenset[str] = frozenset()
    over_loader: bool = False
    over_data: bool = False  # iterates over batches or chunks, as far as the iterable tells
    over_pairs: bool = False  # nothing but its items coming in tuples says that it does
    over_items: bool = False  # each round opens or reads one item of the data
    forwards: int = 0
    runs: bool = False  # a helper called in it runs forwards, also in a loop of its own
    backwards: int = 0
    steps: int = 0
    builds_model: bool = False
    written_out: bool = False  # all its rounds stand in the text: `for net in (a, b):`

    @property
    def counts_all(self) -> bool:
        """`for i in range(len(xs))`: as many rounds as there are samples, batches or whatever xs holds."""
        iterable = self.stmt.iterable if isinstance(self.stmt, ir.For) else None
        if not isinstance(iterable, ir.Call) or iterable.method not in ("range", "trange", "tqdm"):
            return False
        if any(isinstance(part, ir.Call) and part.method == "len" for part in ir.walk(iterable)):
            return True
        return bool(iterable.args) and counts_given(self.function, iterable.args[-1])

    @property
    def is_fixed(self) -> bool:
        """`for i in range(2)`: as many rounds as the text says."""
        iterable = self.stmt.iterable if isinstance(self.stmt, ir.For) else None
        named = isinstance(iterable, ir.Call) and iterable.method == "range"
        return self.written_out or (named and all(isinstance(arg, ir.Const) for arg in iterable.args))  # type: ignore[union-attr]

    @property
    def counts(self) -> bool:
        """`for _ in range(horizon)`: so many rounds as a variable says."""
        iterable = self.stmt.iterable if isinstance(self.stmt, ir.For) else None
        named = isinstance(iterable, ir.Call) and iterable.method in ("range", "trange")
        return named and not all(isinstance(arg, ir.Const) for arg in iterable.args)  # type: ignore[union-attr]

    @property
    def is_step_loop(self) -> bool:
        """One iteration is one step: it runs a forward, a backward or an optimizer, and does not build the model."""
        return (self.forwards + self.backwards + self.steps > 0) and not self.builds_model


@dataclass(slots=True)
class Keep:
    """A function keeps one of its parameters: `param` ends up in `holder`."""

    function: ir.Function
    param: str
    holder: str
    into: str  # "self", "global" or the name of a parameter
    how: str
    stmt: ir.Stmt
    bounded: bool = False
    filename: str | None = None  # None: this file
    row: int = 1
    detached: bool = False  # what is kept is the parameter without its graph
    of_collections: bool | None = None  # in a branch for lists and the like alone, or for all but those


@dataclass(slots=True)
class Pile:
    """What the uses of a container say.

    tensor: something is done with what it keeps that only a tensor allows; host: something that only host values allow;
    small: it is one number for each sample; to_host: it ends on the host, or as one number; on_device: it is computed
    with beside other tensors; unseen: it goes where nothing can be seen; returned: it is handed to callers of which none
    is known.
    """

    tensor: bool = False
    host: bool = False
    small: bool = False
    to_host: bool = False
    on_device: bool = False
    unseen: bool = False
    returned: bool = False
    few: bool = False  # only so many batches, as the loop itself says
    parts: bool = False  # parts of something that may be on the device as a whole
    elsewhere: bool = False  # the module is where a framework has put it: after a fit, that is the host

    @property
    def idle(self) -> bool:
        """Whether tensors wait on the device for the host, or for nobody that the project knows of."""
        against = self.host or self.small or self.on_device or self.few or self.elsewhere or self.parts
        waits = self.returned and not self.unseen
        return self.tensor and not against and (self.to_host or waits)


@dataclass(slots=True)
class HoldPlace:
    """Where a held value is put: `how` is the way into it, `holder` its path."""

    how: str  # "add", "append", "extend", "insert", "item", "call", "comprehension", "join"
    holder: str
    holder_kind: str  # "variable", "attribute", "global"
    container: bool
    holder_tokens: Tokens = frozenset()
    keep: Keep | None = None
    is_slot: bool = False  # a slot of a tensor, into which the value is copied
    never_reset: bool = False
    read: bool = False  # the holder is used for something besides holding
    unread: bool = False  # a network's tensors, in a local container that nothing reads
    read_back: bool = False  # a slot of a buffer, which the same forward reads after it has set it
    number_uses: bool = False  # every other use of the holder is a number's
    pile: Pile | None = None  # what becomes of the container, asked where it keeps device tensors
    in_module: bool = False  # in the forward of an nn.Module
    method_of_module: bool = False
    of_framework: bool = False  # a part of an object that a framework gives, such as Lightning's trainer
    gathers: bool = False  # in the half of a metric that is called with each batch


@dataclass(slots=True)
class HoldRounds:
    """The loops that a held value outlives, outermost first, and how often something is put there."""

    loops: tuple[Loop, ...]
    bounded: bool
    birth_loop: Loop | None = None
    per_step: bool = False  # no loop here, but the function runs once a step
    within_step: bool = False  # a local sum over the micro-batches of the one step that the function is
    over_data: bool = False  # some loop it accumulates over runs through batches
    over_batches: bool = False  # the same, and more says so than that its items come in tuples
    over_items: bool = False  # some loop opens or reads its items one by one
    made_in_loop: bool = False  # a model runs in the loop it accumulates over
    made_inside: bool = True  # the graph is made in the loops it accumulates over, not taken apart in them
    fresh_view: bool = False  # a view of something made in this very iteration


@dataclass(slots=True)
class HoldGraph:
    """What becomes of the autograd graph behind a held value. `state` is the graph's state when the iteration ends: "live",
    "freed" (backward went through it), "retained" (freed, but kept by retain_graph or checkpointing), "device" (a tensor
    without graph) or "unknown"."""

    grad: Grad
    evaluating: bool
    state: str = "unknown"
    consumed: bool = False  # a later backward goes through the holder
    feeds_backward: bool = False  # the same, as far as names lead where values are lost sight of
    returned: bool = False
    escaped: bool = False
    inference: bool = False  # nothing in reach ever calls backward on it
    under_no_grad_fix: bool = False  # switching grad off around it is offered, and is enough
    fed_back: bool = False  # the holder is state that goes into the next forward
    wholly_freed: bool = False  # backward went through all the graphs behind it
    to_differentiate: bool = False  # retained for the sake of a second derivative
    only_called_elsewhere: tuple[ir.Function, ...] = ()  # the functions by which other files reach this one


@dataclass(slots=True)
class Hold:
    """A value that outlives its iteration."""

    function: ir.Function
    stmt: ir.Stmt
    at: ir.Expr | ir.Stmt  # what puts it there
    leaves: tuple[ir.Expr, ...]
    value: Val
    place: HoldPlace
    rounds: HoldRounds
    graph: HoldGraph
    given: ir.Expr | None = None  # what is handed over, a dict or a tuple as it stands
    on_host: bool = False  # computed on the CPU, as the code proves
    call: ir.Call | None = None  # what makes one tensor of a list without a name
    are_tensors: bool = False  # each of the leaves is proven to be a tensor
    unshown: str = ""  # of the leaves one that a criterion gives which may give a number

    @property
    def loop(self) -> Loop | None:
        return self.rounds.loops[-1] if self.rounds.loops else None

    @property
    def in_few_slots(self) -> bool:
        """Whether it fills slots for parts of one batch, `x[i] = f(i)` or `[f(h) for h in layers]`: so many speakers,
        heads or layers, not so many batches."""
        parts = (
            bool(self.rounds.loops)
            and not self.rounds.over_data
            and not any(loop.counts_all for loop in self.rounds.loops)
        )
        return self.place.how in ("comprehension", "item") and parts

    @property
    def in_few_rounds(self) -> bool:
        """Whether it is a variable that only loops add to whose rounds stand in the text."""
        return (
            self.place.holder_kind == "variable"
            and bool(self.rounds.loops)
            and all(loop.written_out for loop in self.rounds.loops)
        )

    @property
    def kept_elsewhere(self) -> bool:
        """Whether the line that keeps the value stands in another file."""
        return self.place.keep is not None and self.place.keep.filename is not None


@dataclass(slots=True)
class ForwardMode:
    """The modes in which a forward runs: grad, eval, phase, and under which conditions."""

    grad: Grad
    evaluating: bool
    guarded: bool = False
    phased: bool = False  # training or evaluating, by what a variable says
    loop_is_evaluation: bool = False  # nothing in its outermost loop needs grad
    after_training: bool = False  # it stands after every backward of its function, and beside them
    trains_nearby: bool = False  # its loop, or without one its function, has a backward or an optimizer


@dataclass(slots=True)
class ForwardResult:
    """What becomes of a forward's result."""

    freed: bool = False
    escaped: bool = False
    returned: bool = False
    stored: bool = False
    read_only: bool = False  # what leaves of its results are numbers or detached
    dense: bool = False  # gives scores over a vocabulary or over every pixel


@dataclass(slots=True)
class ForwardModule:
    """What is run, and what is known of it."""

    path: str
    proven: bool
    by_role: bool = False  # taken for a module's only by its name
    network: Any = (
        None  # the network's class in the project, or its maker's name; None where neither is known
    )


@dataclass(slots=True)
class Forward:
    """A call of a model or criterion that made a graph, or would have with grad enabled."""

    function: ir.Function
    stmt: ir.Stmt
    call: ir.Call
    site: Site | None
    loops: tuple[Loop, ...]
    mode: ForwardMode
    result: ForwardResult
    module: ForwardModule
    inputs: Tokens = frozenset()  # the graphs that go into it


@dataclass(slots=True)
class Backward:
    function: ir.Function
    stmt: ir.Stmt
    call: ir.Call
    loops: tuple[Loop, ...]
    tokens: Tokens
    retain: bool
    create_graph: bool
    retain_argument: bool
    path: str | None
    value: Val
    autograd_grad: bool = False
    guarded: bool = False  # under a condition
    every_k: bool = False  # under an `if` that lets it run every k iterations


@dataclass(slots=True)
class Carried:
    """State of the previous iteration fed into this one's forward without detach."""

    path: str
    loop: Loop | None


@dataclass(slots=True)
class OomHandler:
    """An `except` that recovers from running out of memory. `recovery` is the first statement that does so."""

    stmt: ir.Try
    handler: ir.Handler
    recovery: ir.Stmt
    why: str
    needs_memory: bool = True  # it does more than to clean up


@dataclass(slots=True)
class LateRelease:
    """A large value dead before a peak but kept until its name is rebound, or `freed` by a `del` behind the peak."""

    name: str
    last_use: ir.Stmt
    what: str  # "backward" or "forward"
    freed: ir.Stmt | None
    unproven: str = ""  # in a clause, who else may read the name


@dataclass(slots=True)
class DeferredBackward:
    """Losses of several batches summed in a loop, one backward after it."""

    hold: Hold
    backward: Backward
    doubt: str = ""  # in a clause, why a backward in each round may not be the same


@dataclass(slots=True)
class FunctionRole:
    """Who runs a function, and what for."""

    # where code outside this file comes in, on the ways that lead to it
    entries: tuple[ir.Function, ...] = ()
    is_test: bool = False  # a pytest function or a method of a test case
    is_foreign: bool = False  # computes with another framework
    is_module_forward: bool = False  # the `forward` of an nn.Module: part of training as of evaluation


@dataclass(slots=True)
class FunctionFacts:
    function: ir.Function
    grad_at_entry: Grad
    has_backward: bool = False
    steps: int = 0  # optimizer steps outside loops
    needs_grad: bool = False
    uses_autograd: bool = False  # hooks, requires_grad_, enable_grad, torch.func: someone may want gradients
    differentiated: bool = (
        False  # somebody takes gradients of what it gives by other means than a backward in sight
    )
    calls_eval: bool = False
    all_evaluation: bool = False  # every forward in it evaluates, and nothing needs grad
    role: FunctionRole = field(default_factory=FunctionRole)
    forwards: list[Forward] = field(default_factory=list)
    backwards: list[Backward] = field(default_factory=list)
    holds: list[Hold] = field(default_factory=list)
    recurrent: list[Loop] = field(default_factory=list)  # loops whose forward is fed its own last result
    carried: list[Carried] = field(default_factory=list)
    handlers: list[OomHandler] = field(default_factory=list)
    late: list[LateRelease] = field(default_factory=list)
    deferred: list[DeferredBackward] = field(default_factory=list)

    @property
    def only_called_elsewhere(self) -> tuple[ir.Function, ...]:
        """The functions by which other files reach this one; none where this file runs it by itself."""
        return self.role.entries
