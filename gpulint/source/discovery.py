"""Which files a command means: named ones always, directories searched for Python files, notebooks, and what sets
environment variables: shell scripts, Dockerfiles, `.env` files.

Left out of a search are what git ignores, what the configuration excludes, and directories behind symbolic
links. A file behind a link that leads out of its project is told, and not read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from gpulint.bounds import LeadsOut, real_path
from gpulint.config import Config, ConfigResolver, Glob
from gpulint.source.files import NOTEBOOK_SUFFIX, FileError, read_bytes, why_unreadable
from gpulint.source.shell import is_settings_file

_MAX_IGNORES: Final = 1_000_000  # bytes of a .gitignore
_SEEN: Final = "the same file is checked already, under this name or through a symbolic link"
SUFFIXES: Final = (".py", NOTEBOOK_SUFFIX)
DEFAULT_EXCLUDES: Final = frozenset(
    ".bzr .direnv .eggs .git .git-rewrite .gpulint_cache .hg .ipynb_checkpoints .mypy_cache .nox .pants.d .pyenv "
    ".pytest_cache .pytype .ruff_cache .svn .tox .venv .vscode __pycache__ __pypackages__ _build buck-out build dist "
    "node_modules site-packages venv".split()
)


@dataclass(frozen=True, slots=True)
class Target:
    """A file to check: its absolute path, its size in bytes, and the configuration in force for it; whether it was named, or met on the way."""

    path: str
    size: int
    config: Config
    named: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """A path that cannot be checked, and why."""

    path: str
    error: FileError
    harmless: bool = False  # a link that is passed over: what it leads to has a path of its own
    named: bool = False  # rather than met on the way

    @property
    def missing(self) -> bool:
        """Whether who named it meant something that is not there."""
        return self.named and not self.harmless


@dataclass(slots=True)
class Discovery:
    """What a search found. `skipped` has a path and a reason for everything left out."""

    targets: list[Target] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)


def excluded(path: str, config: Config) -> str | None:
    """Why `exclude` and `extend-exclude` leave out the file at the absolute `path`, itself or a directory around it;
    None where they do not."""
    return _why_out(path, config, _Excludes(config, None))


def _why_out(path: str, config: Config, excludes: _Excludes) -> str | None:
    step = path
    while len(step) > len(config.root):
        reason = excludes.reason(step, os.path.basename(step), step != path)
        if reason:
            return reason
        step = os.path.dirname(step)
    return None


def discover(
    paths: Sequence[str], resolver: ConfigResolver, force_exclude: bool = False, trusted: bool = False
) -> Discovery:
    """The files behind `paths`, each once, those of a directory in the order of their names.

    `force_exclude` applies exclusions to named files too. The links of what is `trusted`, because it is run, may lead anywhere.
    Raises `ConfigError`.
    """
    return _Search(resolver, force_exclude, trusted).run(paths)


class _Search:
    def __init__(self, resolver: ConfigResolver, force_exclude: bool, trusted: bool) -> None:
        self._resolver = resolver
        self._real_path = os.path.realpath if trusted else real_path
        self._force_exclude = force_exclude
        self._found = Discovery()
        self._seen: set[str] = set()
        self._ignores = _GitIgnores()
        # A configuration is kept beside its answer, so that its id stays its own.
        self._known_excludes: dict[tuple[int, str | None], tuple[Config, _Excludes]] = {}

    def run(self, paths: Sequence[str]) -> Discovery:
        for path in paths:
            self._named(os.path.abspath(path))
        return self._found

    def _named(self, path: str) -> None:
        try:
            status = os.stat(path)
        except OSError as error:
            self._problem(path, why_unreadable(path, error), named=True)
            return
        if stat.S_ISDIR(status.st_mode):
            self._directory(path)
            return
        config = self._resolver.for_directory(os.path.dirname(path))
        reason = _why_out(path, config, self._excludes(config, None)) if self._force_exclude else None
        if reason:
            self._found.skipped.append((path, reason))
        else:
            self._add(path, status.st_size, config, named=True)

    def _excludes(self, config: Config, top: str | None) -> _Excludes:
        key = (id(config), top)
        if key not in self._known_excludes:
            self._known_excludes[key] = (config, _Excludes(config, top))
        return self._known_excludes[key][1]

    def _add(self, path: str, size: int, config: Config, real: str = "", named: bool = False) -> None:
        """Take in a file; `real` is its real path where that is known."""
        try:
            real = real or self._real_path(path)
        except LeadsOut as error:
            self._problem(path, f"not read: {error.strerror}", harmless=True, named=named)
            return
        if real not in self._seen:
            self._seen.add(real)
            self._found.targets.append(Target(path, size, config, named))
        else:
            self._found.skipped.append((path, _SEEN))

    def _problem(self, path: str, message: str, harmless: bool = False, named: bool = False) -> None:
        if path not in self._seen:
            self._seen.add(path)
            self._found.problems.append(Problem(path, FileError("unreadable-file", message), harmless, named))

    def _directory(self, top: str) -> None:
        """Search `top`. A named directory is searched even where an exclusion covers it."""
        real_top = os.path.realpath(top)
        ignores = self._ignores.above(real_top)
        pending = [(top, real_top, ignores)]
        while pending:
            directory, real, ignores = pending.pop()
            config = self._resolver.for_directory(directory)
            below = self._scan(directory, real, ignores, config, self._excludes(config, top))
            pending += reversed(below)

    def _scan(
        self, directory: str, real: str, ignores: _Ignores, config: Config, excludes: _Excludes
    ) -> list[tuple[str, str, _Ignores]]:
        """Take in the files of one directory; return the directories in it that are to be searched."""
        try:
            with os.scandir(directory) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            self._problem(directory, why_unreadable(directory, error))
            return []
        if config.respect_gitignore and any(entry.name == ".gitignore" for entry in entries):
            ignores = self._ignores.joined(ignores, real)
        below: list[tuple[str, str, _Ignores]] = []
        for entry in entries:
            is_directory = entry.is_dir(follow_symlinks=False)
            if not is_directory and not _is_meant(entry.name) and not entry.is_symlink():
                continue
            reason = excludes.reason(entry.path, entry.name, is_directory)
            if reason is None and config.respect_gitignore:
                reason = ignores.reason(os.path.join(real, entry.name), is_directory)
            if reason is not None:
                self._found.skipped.append((entry.path, reason))
            elif is_directory:
                below.append((entry.path, os.path.join(real, entry.name), ignores))
            else:
                self._entry(entry, real, config)
        return below

    def _entry(self, entry: os.DirEntry[str], real: str, config: Config) -> None:
        linked = entry.is_symlink()
        if linked and self._is_directory_link(entry, real):
            return
        if not _is_meant(entry.name):
            return
        try:
            status = entry.stat()
        except OSError as error:
            self._problem(entry.path, why_unreadable(entry.path, error))
            return
        if not stat.S_ISREG(status.st_mode):
            self._problem(entry.path, "is a pipe, socket or device, not a file")
        else:
            self._add(entry.path, status.st_size, config, "" if linked else os.path.join(real, entry.name))

    def _is_directory_link(self, entry: os.DirEntry[str], real: str) -> bool:
        """Whether a link leads to a directory. Such links are not followed; one that leads back up is reported."""
        try:
            if not entry.is_dir():
                return False
        except OSError:
            return False
        target = os.path.realpath(entry.path)
        if target == real or real.startswith(target.rstrip(os.sep) + os.sep):
            self._problem(
                entry.path, f"directory loop: the link leads back up to {target}; not followed", True
            )
        else:
            self._found.skipped.append((entry.path, "symbolic link to a directory"))
        return True


def _is_meant(name: str) -> bool:
    return name.endswith(SUFFIXES) or is_settings_file(name)


class _Excludes:
    """The `exclude` and `extend-exclude` patterns, for entries below one named directory."""

    def __init__(self, config: Config, top: str | None) -> None:
        self._names = DEFAULT_EXCLUDES if config.exclude is None else frozenset()
        globs = (*(config.exclude or ()), *config.extend_exclude)
        self._specs = [
            (base, spec) for base, spec in _specs(globs) if top is None or not _covers(base, spec, top)
        ]

    def reason(self, path: str, name: str, is_directory: bool) -> str | None:
        if name in self._names:
            return "excluded by default"
        for base, spec in self._specs:
            relative = _relative(path, base)
            if relative and spec.match_file(relative + "/" * is_directory):
                return "excluded by the configuration"
        return None


def _specs(globs: Iterable[Glob]) -> Iterator[tuple[str, Any]]:
    by_base: dict[str, list[str]] = {}
    for glob in globs:
        by_base.setdefault(glob.base, []).append(glob.pattern)
    if by_base:
        from gpulint.source.patterns import ignore_spec

        for base, patterns in by_base.items():
            yield base, ignore_spec(patterns)


def _relative(path: str, base: str) -> str:
    """`path` relative to `base` with slashes, or nothing where it does not lie below."""
    prefix = base.rstrip(os.sep) + os.sep
    return path[len(prefix) :].replace(os.sep, "/") if path.startswith(prefix) else ""


def _covers(base: str, spec: Any, directory: str) -> bool:
    relative = _relative(directory, base)
    return bool(relative) and bool(spec.match_file(relative + "/"))


@dataclass(frozen=True, slots=True)
class _Ignores:
    """The .gitignore files in force in a directory, the deepest first."""

    specs: tuple[tuple[str, Any], ...] = ()

    def reason(self, path: str, is_directory: bool) -> str | None:
        for base, spec in self.specs:
            relative = _relative(path, base)
            verdict = spec.check_file(relative + "/" * is_directory).include if relative else None
            if verdict is not None:
                return "ignored by git" if verdict else None
        return None


class _GitIgnores:
    """Reads .gitignore files, each once."""

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}

    def above(self, directory: str) -> _Ignores:
        """What holds in `directory` by the files above it, up to the repository's top.

        Where they ignore the directory itself, it was named all the same, and they say nothing about it.
        """
        chain = _up_to_repository(directory)
        specs: list[tuple[str, Any]] = []
        if chain and os.path.isdir(os.path.join(chain[-1], ".git")):
            specs += self._spec(os.path.join(chain[-1], ".git", "info", "exclude"), chain[-1])
        for parent in reversed(chain):
            if parent != directory:
                specs += self._spec(os.path.join(parent, ".gitignore"), parent)
        specs.reverse()
        ignores = _Ignores(tuple(specs))
        step = directory
        while chain and step != chain[-1]:
            if ignores.reason(step, True):
                return _Ignores()
            step = os.path.dirname(step)
        return ignores

    def joined(self, outer: _Ignores, directory: str) -> _Ignores:
        """`outer` and the .gitignore in `directory`."""
        return _Ignores((*self._spec(os.path.join(directory, ".gitignore"), directory), *outer.specs))

    def _spec(self, file: str, base: str) -> list[tuple[str, Any]]:
        if file not in self._known:
            self._known[file] = _read_spec(file)
        spec = self._known[file]
        return [] if spec is None else [(base, spec)]


def _read_spec(file: str) -> Any:
    try:
        text = read_bytes(file, _MAX_IGNORES).decode("utf-8", "replace")
    except FileError:
        return None
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if not lines:
        return None
    from gpulint.source.patterns import UnreadablePattern, ignore_spec

    try:
        return ignore_spec(lines)
    except UnreadablePattern:  # git passes over a pattern it cannot read
        return ignore_spec([line for line in lines if _is_pattern(line)])


def _is_pattern(line: str) -> bool:
    from gpulint.source.patterns import UnreadablePattern, ignore_spec

    try:
        ignore_spec([line])
    except UnreadablePattern:
        return False
    return True


def _up_to_repository(directory: str) -> list[str]:
    """`directory` and its parents up to the one that holds .git; without a repository up to the working directory."""
    chain = [directory]
    here = os.path.realpath(os.getcwd())
    while not os.path.exists(os.path.join(chain[-1], ".git")):
        parent = os.path.dirname(chain[-1])
        if parent == chain[-1]:
            return chain[: chain.index(here) + 1] if here in chain else chain[:1]
        chain.append(parent)
    return chain
