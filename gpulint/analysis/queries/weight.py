"""Whether what has a network's weights is large enough to matter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from gpulint.analysis.domain.values import Value
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.weights import LARGE, weight
from gpulint.answers import Answer, Question, left_open, proven, refuted, unweighed

SMALL: Final = 1_000_000

Optimizer = Literal["restored", "saved", ""]  # whose state is in a checkpoint, and what says so


def copy_matters(evaluator: Evaluator, value: Value) -> Answer:
    """Whether one more copy of a network's weights is much beside its training."""
    found = weight(evaluator, value)
    if found.least >= LARGE:
        return proven(Question.SIZE, "the network is large")
    if found.whole and found.least < SMALL:
        return left_open(Question.SIZE, f"the network has about {found.least:,} weights")
    return left_open(Question.SIZE, "how large it is, the code does not say")


def checkpoint_matters(
    evaluator: Evaluator,
    networks: list[Value],
    optimizer: Optimizer,
    by_ranks: bool,
    several: bool,
    stays: bool,
) -> Iterator[Answer]:
    """Whether a checkpoint of networks is much beside what a training takes: an optimizer's state is twice their weights, be it restored
    from there, or only saved by the program."""
    found = [weight(evaluator, one) for one in networks]
    together = sum(one.least for one in found)
    small = bool(found) and all(one.whole for one in found)
    if together * (3 if optimizer else 1) >= LARGE:
        yield proven(Question.SIZE, "the network is large")
    elif small and not by_ranks and not optimizer and (not stays or together < SMALL):
        yield refuted(Question.SIZE, f"the networks have about {together:,} weights")
    elif small:
        yield left_open(Question.SIZE, f"the networks have about {together:,} weights")
    elif by_ranks:
        yield proven(Question.SIZE, "all processes load it onto one GPU")
    elif optimizer or several:
        yield unweighed(Question.SIZE, "how large the network is, the code does not say")
    else:
        yield left_open(Question.SIZE, "how large it is, the code does not say")
