"""The functions that other programs call. `gpulint` exports them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gpulint.config import Config, ConfigError, ConfigResolver, load_config
from gpulint.findings import Finding
from gpulint.lint.checking import Checker
from gpulint.lint.engine import Options, run
from gpulint.source.discovery import discover

if TYPE_CHECKING:
    from gpulint.fix.fixing import FixResult

_BOM = "\ufeff"
# A `Config`, the keys of a `[tool.gpulint]` table, or the path of a configuration file.
ConfigLike = Config | Mapping[str, Any] | str | os.PathLike[str]


def check_source(text: str, filename: str = "<stdin>", config: ConfigLike | None = None) -> list[Finding]:
    """The findings in a module's source, in order of place.

    Text that does not parse gives one GPU000 finding. Without `config` the built-in settings hold; no
    configuration file is searched for. Raises `ConfigError` for a wrong `config`.
    """
    return list(Checker((_config(config),), hashing=False).check_text(text, filename).findings)


def fix_source(
    text: str, filename: str = "<stdin>", config: ConfigLike | None = None, *, unsafe: bool = False
) -> FixResult:
    """`text` with its safe fixes applied (the unsafe ones too with `unsafe`), what was fixed, and what is
    left.

    The result's `text` is `text` itself where there is nothing to fix or it does not parse. Raises
    `ConfigError` for a wrong `config`.
    """
    from gpulint.fix.fixing import FixResult

    checker = Checker((_config(config),), "diff", unsafe, hashing=False)
    result = checker.check_text(text, filename)
    if result.outcome is None:
        return FixResult(text, [], list(result.findings), 0)
    if text.startswith(_BOM):
        return replace(result.outcome, text=_BOM + result.outcome.text)
    return result.outcome


def check_paths(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    config: ConfigLike | None = None,
    *,
    jobs: int = 1,
    cache: bool = False,
) -> list[Finding]:
    """The findings in files and in the Python files below directories, in order of file and place.

    Without `config` the nearest configuration file of each file holds. What cannot be read or parsed gives a
    GPU000 finding. File names are absolute. Raises `ConfigError`.
    """
    named = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    resolver = ConfigResolver() if config is None else ConfigResolver.of(_config(config))
    return run(
        discover([os.fspath(path) for path in named], resolver), Options(jobs=jobs, cache=cache)
    ).findings


def _config(config: ConfigLike | None) -> Config:
    if config is None:
        return Config(root=os.getcwd())
    if isinstance(config, Config):
        return config
    if isinstance(config, Mapping):
        return Config.from_mapping(config)
    loaded = load_config(os.fspath(config))
    if loaded is None:
        raise ConfigError(f"{os.fspath(config)}: has no [tool.gpulint] table")
    return loaded
