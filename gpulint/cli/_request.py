"""The options of `gpulint check`, as given."""

from __future__ import annotations

from gpulint.cli._options import Given
from gpulint.config import Config, ConfigResolver
from gpulint.lint.checking import Mode


class Request(Given):
    """The options of the command, those that a configuration has too as `overrides`."""

    paths: tuple[str, ...]

    def under(self, config: Config) -> Request:
        """With what `config` says where the command line does not."""
        only = _first(self.fix_only, self.fix is not False and config.fix_only)
        return self.but(
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
