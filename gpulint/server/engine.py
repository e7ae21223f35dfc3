"""From a document to findings: the configuration in force, exclusions, the checker. Called from the worker's thread only."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpulint.config import FILE_NAMES, Config, ConfigError, ConfigResolver, Overrides
from gpulint.findings import Finding
from gpulint.lint.checking import Checker
from gpulint.lint.selection import known_rules
from gpulint.lint.trees import SourceError
from gpulint.rule import Rule
from gpulint.source.discovery import excluded
from gpulint.source.notebooks import is_notebook
from gpulint.source.program import top_at
from gpulint.source.shell import is_settings_text

if TYPE_CHECKING:
    from gpulint.lint.explaining import Explained

Stamp = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class Checked:
    """What checking a text gave. `dependencies` are the absolute paths of other files that the findings rest on, `rules`
    those that exist, and `trace` is the traceback of a failed rule."""

    findings: tuple[Finding, ...] = ()
    dependencies: frozenset[str] = frozenset()
    rules: tuple[type[Rule], ...] = ()
    trace: str = ""

    def in_cell(self, number: int) -> Checked:
        """Only the findings in one cell of a notebook."""
        return replace(self, findings=tuple(item for item in self.findings if item.cell == number))


class Engine:
    """Checks texts under the nearest configuration of their path, read anew when its file changes.

    `buffers` stand for files that others import. `complain` gets a sentence about a wrong configuration, once; the last
    one that was right stays in force.
    """

    def __init__(
        self, buffers: Mapping[str, bytes], overrides: Overrides, complain: Callable[[str], None]
    ) -> None:
        self._buffers = buffers
        self._overrides = overrides
        self._complain = complain
        self._last: dict[str, Checker] = {}
        self.reset()

    def configure(self, overrides: Overrides) -> None:
        """The editor's settings have changed."""
        self._overrides = overrides
        self.reset()

    def forget_files(self) -> None:
        """Python files may have changed on disk."""
        for checker in self._checkers:
            checker.forget_files()

    def warm(self) -> None:
        """What the first check needs is imported."""
        gc.collect()
        gc.freeze()  # modules and the protocol's classes: nothing to look through again and again

    def check(self, path: str, text: str) -> Checked:
        """The findings in `text`, none where the configuration excludes `path` or no configuration is usable."""
        checker = self._checker(os.path.dirname(path))
        if checker is None or excluded(path, checker.configs[0]):
            return Checked()
        with _uncollected():
            result = checker.check_text(text, path)
        dependencies = frozenset(name for name, _ in result.dependencies)
        found = () if result.internal else result.findings
        return Checked(found, dependencies, known_rules(checker.configs[0]), result.trace)

    def explained(self, path: str, text: str) -> tuple[Explained, ...]:
        """What the rules in force consider in `text`, told or not; nothing where it cannot be analysed."""
        from gpulint.lint.explaining import explain_text

        checker = self._checker(os.path.dirname(path))
        if checker is None or excluded(path, checker.configs[0]) or is_settings_text(path, text):
            return ()
        if not is_notebook(path) and not checker.passes_gate(text.encode("utf-8", "replace"), path, 0):
            return ()
        try:
            with _uncollected():
                rules = checker.selection(0).rules_for(path)
                return tuple(explain_text(text.removeprefix("\ufeff"), path, rules, checker.project))
        except SourceError:
            return ()

    def fixed(self, path: str, text: str, unsafe: bool, rule: str = "") -> str:
        """`text` with its fixes applied, as `gpulint --fix` does, those of one rule where its code is given; itself where
        there is nothing to fix."""
        checker = self._checker(os.path.dirname(path))
        if checker is None or excluded(path, checker.configs[0]):
            return text
        fixer = replace(checker, mode="diff", unsafe=unsafe)
        if rule:
            only = replace(checker.configs[0], fixable=(rule,))
            fixer = replace(fixer, configs=(only,), _selections={})
        with _uncollected():
            outcome = fixer.check_text(text, path).outcome
        if outcome is None:
            return text
        return ("\ufeff" if text.startswith("\ufeff") else "") + outcome.text

    # --- configuration -------------------------------------------------------------------------------------------

    def reset(self) -> None:
        """Configuration files may have changed."""
        self._resolver = ConfigResolver(overrides=self._overrides)
        self._stamps: dict[str, Stamp] = {}
        self._current: dict[str, Checker | None] = {}
        self._checkers: list[Checker] = []

    def _checker(self, directory: str) -> Checker | None:
        stamp = _stamp(directory)
        if self._stamps.get(directory, stamp) != stamp:
            self.reset()
        self._stamps[directory] = stamp
        if directory not in self._current:
            self._current[directory] = self._configured(directory)
        return self._current[directory]

    def _configured(self, directory: str) -> Checker | None:
        try:
            checker = self._checker_of(self._resolver.for_directory(directory))
            self._last[directory] = checker
        except ConfigError as error:
            self._complain(str(error))
            return self._last.get(directory)
        return checker

    def _checker_of(self, config: Config) -> Checker:
        """One checker for each configuration: it keeps what it has read of the project. Raises `ConfigError`."""
        for known in self._checkers:
            if known.configs[0] == config:
                return known
        checker = Checker((config,), hashing=False, top=top_at(config.root), buffers=self._buffers)
        checker.selection(0)
        self._checkers.append(checker)
        return checker


@contextmanager
def _uncollected() -> Iterator[None]:
    """No garbage collection: it would look through the growing syntax tree again and again."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _stamp(directory: str) -> Stamp:
    """What tells that a configuration file at or above `directory` has come, gone or changed. Twenty calls of `stat`, so
    that it also works with editors that watch no files."""
    found: list[tuple[str, int, int]] = []
    current = directory
    while True:
        for name in FILE_NAMES:
            path = os.path.join(current, name)
            try:
                status = os.stat(path)
            except OSError:
                continue
            found.append((path, status.st_mtime_ns, status.st_size))
        parent = os.path.dirname(current)
        if parent == current:
            return tuple(found)
        current = parent
