"""What a file habitually does besides holding values, gathered when a rule asks for it and never before."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpulint.analysis.facts import FunctionFacts
    from gpulint.analysis.misuse import CreateGraph, GradModeMisuse, KeptGradients
    from gpulint.analysis.program import FileAnalysis


class Habits:
    """Facts about one file that few rules need: each is computed at its first use."""

    def __init__(self, file: FileAnalysis, functions: list[FunctionFacts]) -> None:
        self._file = file
        self._functions = functions

    @cached_property
    def grad_modes(self) -> list[GradModeMisuse]:
        from gpulint.analysis.misuse import grad_mode_misuses

        return grad_mode_misuses(self._file)

    @cached_property
    def create_graphs(self) -> list[CreateGraph]:
        from gpulint.analysis.misuse import create_graphs

        return create_graphs(self._file)

    @cached_property
    def kept_gradients(self) -> list[KeptGradients]:
        from gpulint.analysis.misuse import kept_gradients

        return kept_gradients(self._file)
