"""The options of `gpulint check`, as given."""

from __future__ import annotations

from dataclasses import dataclass

from gpulint.config import Overrides
from gpulint.lint.checking import Mode


@dataclass(frozen=True, slots=True)
class Request:
    """The options of the command, as given."""

    paths: tuple[str, ...] = ()
    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    target_torch: str | None = None
    confidence: str | None = None
    fix: bool = False
    unsafe_fixes: bool = False
    diff: bool = False
    exclude: tuple[str, ...] = ()
    extend_exclude: tuple[str, ...] = ()
    force_exclude: bool = False
    stdin_filename: str | None = None
    output_format: str = "text"
    output_file: str | None = None
    statistics: bool = False
    colour: str = "auto"
    quiet: bool = False
    verbose: bool = False
    config: str | None = None
    isolated: bool = False
    baseline: str | None = None
    write_baseline: bool = False
    add_ignore: bool = False
    fail_on: str | None = None
    exit_zero: bool = False
    jobs: int = 0
    no_cache: bool = False
    cache_dir: str | None = None
    watch: bool = False

    @property
    def mode(self) -> Mode:
        return "diff" if self.diff else "fix" if self.fix else "check"

    @property
    def from_stdin(self) -> bool:
        return self.paths == ("-",) or (not self.paths and self.stdin_filename is not None)

    @property
    def overrides(self) -> Overrides:
        return Overrides(
            self.select,
            self.extend_select,
            self.ignore,
            self.exclude or None,
            self.extend_exclude,
            self.fail_on,
            self.target_torch,
            self.confidence,
        )
