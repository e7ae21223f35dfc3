"""The engine that is asked, on the programs of tests."""

import ast
from textwrap import dedent

from gpulint.analysis.domain.values import Value
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.project.file import File, Function
from gpulint.analysis.project.program import Program
from gpulint.analysis.queries.multiplicity import Multiplicity
from gpulint.analysis.queries.steps import Steps


def engine(text: str) -> tuple[File, Evaluator]:
    text = dedent(text)
    file = File("program.py", text, ast.parse(text))
    return file, Evaluator(Program(file, None, {}))


def function_of(file: File, name: str) -> Function:
    return next(one for one in file.functions if one.name == name)


def call_of(file: File, evaluator: Evaluator, name: str) -> tuple[ast.Call, Frame]:
    """The last call of what has this name, with its frame."""
    *_, (function, call) = file.calls_named(name)
    return call, evaluator.root(function)


def returned(text: str, name: str = "f") -> Value:
    """What the first `return` of a function gives."""
    file, evaluator = engine(text)
    function = function_of(file, name)
    return evaluator.value_of(function.flow.returns[0].value, evaluator.root(function))


def last_value(text: str) -> Value:
    """What the expression of the last statement of a module gives."""
    file, evaluator = engine(text)
    statement = file.tree.body[-1]
    return evaluator.value_of(statement.value, evaluator.root(file.body))


def rates_of(text: str, name: str) -> list[str]:
    """How often the last call of what has this name runs, in each way that there is to it."""
    file, evaluator = engine(text)
    call, frame = call_of(file, evaluator, name)
    return [one.rate for one in Multiplicity(evaluator, Steps(evaluator)).of(call, frame)]
