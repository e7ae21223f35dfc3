"""Evaluations of transformers' `Trainer` that gather every output of the network on the GPU until the last batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulint.rules.detect.lifetimes.suspicion import Suspicion

from gpulint.analysis.code import ir
from gpulint.analysis.file.classes import ClassInfo
from gpulint.analysis.file.lookup import called_in_project, class_named, qualified
from gpulint.analysis.questions.device.origins import bindings
from gpulint.analysis.torch.trainers import (
    ARGUMENTS,
    DENSE,
    EVALUATES_ITSELF,
    MORE_OUTPUTS,
    MOVES_ON,
    NARROW,
    SCHEDULES,
    TRAINERS,
)
from gpulint.answers import Answer, Question, left_open, proven, refuted, until_refuted
from gpulint.findings import Severity
from gpulint.rule import Cost

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis


@dataclass(frozen=True, slots=True)
class Made:
    """A trainer that is made. `own` are the program's classes that it may be of, where they are not the library's."""

    function: ir.Function
    call: ir.Call
    base: str
    own: tuple[ClassInfo, ...]


def gathering_trainers(file: FileAnalysis) -> list[tuple[Made, Suspicion]]:
    """The trainers of a file that are given metrics to compute."""
    return [(made, _suspicion(file, made)) for made in _made(file)]


def _made(file: FileAnalysis) -> Iterator[Made]:
    for function in file.module.functions:
        for _, call in ir.calls(function.body):
            if not any(name == "compute_metrics" for name, _ in call.keywords):
                continue
            classes = list(_classes_of(file, function, call.func))
            own = tuple(info for scope, one in classes if (info := class_named(scope, one)) is not None)
            bases = [*filter(None, map(_base_of, own))]
            bases += [
                full for scope, one in classes if (full := qualified(file, scope, one.path)) in TRAINERS
            ]
            if bases:
                yield Made(function, call, bases[0], own)


def _classes_of(
    file: FileAnalysis, function: ir.Function, named: ir.Expr
) -> Iterator[tuple[ir.Function, ir.Expr]]:
    """The names of the classes that a name stands for: itself, or those that it is bound to, as in
    `kind = MyTrainer if args.mine else Trainer`."""
    yield function, named
    for scope, value in _values(file, function, named):
        chosen = value.operands[1:] if isinstance(value, ir.Op) and value.op == "if" else (value,)
        yield from ((scope, one) for one in chosen if one is not named and one.path is not None)


def _base_of(info: ClassInfo) -> str | None:
    names = [name for one in info.ancestors() for name in one.base_names]
    return next((name for name in names if name in TRAINERS), None)


def _suspicion(file: FileAnalysis, made: Made) -> Suspicion:
    answers = until_refuted(_answers(file, made))
    more = any(answer.question is Question.SIZE and "hidden" in answer.clause for answer in answers)
    what = "the network's outputs" + (", hidden states and attentions among them," if more else "")
    return Suspicion(
        made.call,
        made.call.method,
        f"evaluating gathers {what} of all batches on the GPU, and joins them anew with each",
        "`compute_metrics` is given everything at the end; `preprocess_logits_for_metrics` makes it small batch by batch, "
        "`eval_accumulation_steps` moves it to the host",
        Cost(
            "every output of the evaluation, twice while a batch is joined to them",
            "15.8 GiB at the peak after 16 batches of 500 MiB, 681 MiB with `preprocess_logits_for_metrics`, for a 4-layer language model; H200, torch 2.11",
        ),
        answers,
        Severity.ERROR if more else Severity.WARNING,
    )


# --- what the claim stands on ---------------------------------------------------------------------------------------


def _answers(file: FileAnalysis, made: Made) -> Iterator[Answer]:
    given = dict(made.call.keywords)
    metrics = given["compute_metrics"]
    if _is_nothing(metrics):
        yield refuted(Question.READS, "no metrics are computed: no outputs are kept")
    elif isinstance(metrics, ir.Op) or None in given:
        yield left_open(Question.READS, "whether metrics are computed is decided elsewhere")
    else:
        yield proven(Question.READS, "metrics are computed of all outputs at once")
    if not _is_nothing(given.get("preprocess_logits_for_metrics")):
        yield refuted(Question.OUTLIVES, "`preprocess_logits_for_metrics` reduces the outputs batch by batch")
    own = (f"{i.cls.name}.{name}" for i in made.own for name in sorted(EVALUATES_ITSELF) if i.method(name))
    if itself := next(own, None):
        yield left_open(Question.OUTLIVES, f"`{itself}` may do it otherwise")
    arguments = _arguments(file, made)
    yield _kept(file, arguments)
    yield _size(file, made, arguments)
    yield _evaluates(file, made, arguments)


def _is_nothing(expr: ir.Expr | None) -> bool:
    return expr is None or (isinstance(expr, ir.Const) and not expr.value)


@dataclass(frozen=True, slots=True)
class _Arguments:
    """The `TrainingArguments` that a trainer is given. `call` is None where they are not made in sight; `changed` are those that are set
    afterwards."""

    call: ir.Call | None
    changed: frozenset[str] = frozenset()

    def keyword(self, name: str) -> ir.Expr | None:
        return None if self.call is None else self.call.keyword(name)

    @property
    def more(self) -> bool:
        """Whether the call takes more from somewhere else: `TrainingArguments(**config)`."""
        return self.call is not None and any(name is None for name, _ in self.call.keywords)


def _arguments(file: FileAnalysis, made: Made) -> _Arguments:
    given = made.call.argument(1, "args")
    changed = frozenset(
        target.attr
        for function in file.module.functions
        for statement in ir.statements(function.body)
        if isinstance(statement, ir.Assign)
        for target in statement.targets
        if isinstance(target, ir.Attr)
    )
    for function, value in _values(file, made.function, given):
        if isinstance(value, ir.Call) and _makes_arguments(file, function, value):
            return _Arguments(value, changed)
        callee = called_in_project(function, value) if isinstance(value, ir.Call) else None
        if callee is not None:
            for statement in ir.statements(callee.body):
                result = statement.value if isinstance(statement, ir.Return) else None
                if isinstance(result, ir.Call) and _makes_arguments(callee.home, callee, result):
                    return _Arguments(result, changed)
    return _Arguments(None, changed)


def _makes_arguments(file: FileAnalysis, function: ir.Function, call: ir.Call) -> bool:
    return qualified(file, function, call.func.path) in ARGUMENTS


def _values(
    file: FileAnalysis, function: ir.Function, expr: ir.Expr | None
) -> list[tuple[ir.Function, ir.Expr]]:
    """What an expression stands for, through one name of the function or of the module."""
    if expr is None:
        return []
    if expr.path is None:
        return [(function, expr)]
    for scope in (function, file.module.body):
        values = bindings(scope).get(expr.path)
        if values is not None:
            return [(scope, value) for value in values if value is not None]
    return []


def _kept(file: FileAnalysis, arguments: _Arguments) -> Answer:
    for name in sorted(MOVES_ON):
        if not _is_nothing(arguments.keyword(name)) or name in arguments.changed:
            return refuted(Question.OUTLIVES, f"`{name}` is given", arguments.call)
    if arguments.call is None or arguments.more:
        return left_open(
            Question.OUTLIVES, "`eval_accumulation_steps` may be given where the arguments come from"
        )
    return proven(
        Question.OUTLIVES, "without `eval_accumulation_steps` all outputs stay on the GPU to the end"
    )


def _size(file: FileAnalysis, made: Made, arguments: _Arguments) -> Answer:
    if not _is_nothing(arguments.keyword("predict_with_generate")):
        return refuted(Question.SIZE, "it gathers the numbers of generated tokens", arguments.call)
    if any(_asks_for_more(function) for function in file.module.functions):
        return proven(Question.SIZE, "the outputs have hidden states or attentions in them")
    network = made.call.argument(0, "model")
    if made.base.startswith("trl."):
        return proven(Question.SIZE, "a score for each word of the vocabulary at each place")
    for function, value in _makers(file, made.function, network):
        for call in (part for part in ir.walk(value) if isinstance(part, ir.Call)):
            paths = " ".join(_paths(file, function, call.func))
            dense, narrow = DENSE.search(paths), NARROW.search(paths)
            if dense and narrow:
                return left_open(Question.SIZE, "some of the networks that it may be give little", call)
            if dense:
                return proven(Question.SIZE, "a score for each class at each place", call)
            if narrow:
                return refuted(Question.SIZE, "a few numbers for each sample or token", call)
    return left_open(Question.SIZE, "how much the network gives for each sample is not in sight")


def _paths(file: FileAnalysis, function: ir.Function, func: ir.Expr) -> Iterator[str]:
    """What a call is of, by each class that its name may stand for: `kind = BertForMaskedLM; kind.from_pretrained(name)`."""
    named = func.base if isinstance(func, ir.Attr) else func
    yield qualified(file, function, func.path) or func.path or ""
    for scope, one in _classes_of(file, function, named):
        yield qualified(file, scope, one.path) or one.path or ""


def _makers(
    file: FileAnalysis, function: ir.Function, network: ir.Expr | None, depth: int = 3
) -> Iterator[tuple[ir.Function, ir.Expr]]:
    """What a network is made by, also through what wraps it: `get_peft_model(model, config)`."""
    for scope, value in _values(file, function, network):
        yield scope, value
        for part in ir.walk(value) if depth else ():
            if isinstance(part, ir.Name) and part is not value:
                yield from _makers(file, scope, part, depth - 1)


def _asks_for_more(function: ir.Function) -> bool:
    """`AutoConfig.from_pretrained(name, output_hidden_states=True)`, `config.output_attentions = True`."""
    for statement in ir.statements(function.body):
        if isinstance(statement, ir.Assign) and _is_true(statement.value):
            if any(isinstance(t, ir.Attr) and t.attr in MORE_OUTPUTS for t in statement.targets):
                return True
        for call in ir.own_calls(statement):
            loads = call.method in ("from_pretrained", "from_config") or call.method.endswith("Config")
            if loads and any(name in MORE_OUTPUTS and _is_true(value) for name, value in call.keywords):
                return True
    return False


def _is_true(value: ir.Expr | None) -> bool:
    return isinstance(value, ir.Const) and value.value is True


def _evaluates(file: FileAnalysis, made: Made, arguments: _Arguments) -> Answer:
    """Whether the program evaluates with it at all."""
    if any({"evaluate", "predict"} & evidence.called for evidence in file.evidence.values()):
        return proven(Question.REACHED, "the program evaluates")
    schedules = [arguments.keyword(name) for name in sorted(SCHEDULES)]
    if any(given is not None and not _says_no(given) for given in schedules):
        return proven(Question.REACHED, "it evaluates while it trains", arguments.call)
    if _is_nothing(made.call.keyword("eval_dataset")):
        return refuted(Question.REACHED, "nothing is given to evaluate, and nothing evaluates")
    return left_open(Question.REACHED, "when it evaluates is not in sight")


def _says_no(given: ir.Expr) -> bool:
    return isinstance(given, ir.Const) and given.value in ("no", False, None)


def arguments_made(file: FileAnalysis, made: Made) -> ir.Call | None:
    """The call that makes a trainer's arguments, where it stands in this file."""
    call = _arguments(file, made).call
    here = any(call is other for function in file.module.functions for _, other in ir.calls(function.body))
    return call if here else None
