"""The options of `gpulint check`, as given."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from gpulint.cli._options import Configured
from gpulint.config import Config, ConfigResolver, Overrides
from gpulint.lint.checking import Mode


@dataclass(frozen=True, slots=True)
class Request:
    """The options of the command, as given."""

    paths: tuple[str, ...] = ()
    overrides: Overrides = field(default_factory=Overrides)
    fix: bool | None = None
    fix_only: bool | None = None
    unsafe_fixes: bool | None = None
    show_fixes: bool | None = None
    diff: bool = False
    exit_non_zero_on_fix: bool = False
    force_exclude: bool = False
    stdin_filename: str | None = None
    output_format: str | None = None
    output_file: str | None = None
    statistics: bool = False
    colour: str = "auto"
    quiet: bool = False
    verbose: bool = False
    config: Configured = field(default_factory=Configured)
    isolated: bool = False
    baseline: str | None = None
    write_baseline: bool = False
    add_ignore: bool = False
    exit_zero: bool = False
    jobs: int = 0
    no_cache: bool = False
    cache_dir: str | None = None
    watch: bool = False
    show_files: bool = False
    show_settings: bool = False

    def under(self, config: Config) -> Request:
        """With what `config` says where the command line does not."""
        only = _first(self.fix_only, self.fix is not False and config.fix_only)
        return replace(
            self,
            fix=only or _first(self.fix, config.fix),
            fix_only=only,
            unsafe_fixes=_first(self.unsafe_fixes, config.unsafe_fixes),
            show_fixes=_first(self.show_fixes, config.show_fixes),
            output_format=self.output_format or config.output_format,
            baseline=self.baseline or config.baseline,
        )

    @property
    def mode(self) -> Mode:
        if self.diff:
            return "diff"
        written_otherwise = self.add_ignore or self.write_baseline
        return "fix" if (self.fix or self.fix_only) and not written_otherwise else "check"

    @property
    def resolver(self) -> ConfigResolver:
        """Answers which configuration is in force. Raises `ConfigError`."""
        return ConfigResolver(self.config.file, self.isolated, self.overrides)

    @property
    def from_stdin(self) -> bool:
        return self.paths == ("-",) or (not self.paths and self.stdin_filename is not None)


def _first(given: bool | None, otherwise: bool) -> bool:
    return otherwise if given is None else given
