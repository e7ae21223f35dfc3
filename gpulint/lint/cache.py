"""What earlier runs found, so that an unchanged file is neither gated nor parsed again.

One JSON file for each project and configuration, named by digests of where the project is and of everything that findings
depend on besides the files themselves. An entry holds while the file and all files it depended on have the same
content. A cache that is missing, corrupt or cannot be written costs time, never correctness, and is no error.

The files lie in a folder of the user's. In a repository anybody may have written them: an entry without findings hides
findings, and a link in the place of one leads to what is then written or taken away.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from gpulint.bounds import is_below, project_around
from gpulint.findings import Finding
from gpulint.lint.results import FileResult
from gpulint.source.files import content_hash
from gpulint.version import __version__

_FORMAT: Final = 6
# With the last, not yet whole
_OURS: Final = re.compile(r"[0-9a-f]{24}-[0-9a-f]{24}\.json(?:\.[0-9a-f]{12})?")
_STALE_SECONDS: Final = 30 * 24 * 3600
# A file that is not there, as a dependency: its appearance changes what the dependent file means.
ABSENT: Final = ""
# By system: the variable with the place of users' caches, and where in their home that is without it.
_PLACES: Final = {"win32": ("LOCALAPPDATA", "AppData/Local"), "darwin": ("", "Library/Caches")}


class Foreign(OSError):
    """A folder is not the user's alone, and no cache; `strerror` is a sentence."""

    def __init__(self, folder: str, why: str) -> None:
        super().__init__(errno.EPERM, f"{folder} is not used as a cache: {why}", folder)


def users_folder() -> str:
    """Where this user's caches are, if nothing else is asked for; empty where the user has no home."""
    variable, otherwise = _PLACES.get(sys.platform, ("XDG_CACHE_HOME", ".cache"))
    home = os.path.expanduser("~")
    for place in (os.environ.get(variable, ""), os.path.join(home, otherwise)):
        if os.path.isabs(place):
            return os.path.join(place, "gpulint")
    return ""


def _check_outside(folder: str, root: str) -> None:
    """That a folder is none of a project's, whose files anybody may have written. Raises `Foreign`."""
    project = project_around(root) or root
    if is_below(folder, project) or is_below(os.path.realpath(folder), os.path.realpath(project)):
        why = f"it lies in the project {project}, which may have brought it along; name another"
        raise Foreign(folder, why)


def _check_own(folder: str) -> None:
    """That only its user writes to a folder. Raises OSError, and `Foreign` where others may."""
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode):
        raise Foreign(folder, "it is a file or a link")
    if os.name != "posix":
        return
    if found.st_uid != os.geteuid():
        raise Foreign(folder, "it belongs to another user; name a folder of your own, or none")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise Foreign(folder, "others may write to it; name a folder of your own, or none")


def _own_files(folder: str) -> list[str]:
    """What is in a folder that is ours."""
    return [os.path.join(folder, name) for name in os.listdir(folder) if _OURS.fullmatch(name)]


def _content(path: str) -> dict[str, Any]:
    """What is in a file of ours; nothing where there is none, something else in its place, or another version's."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return {}
        with open(path, "rb") as stream:
            found = json.load(stream)
        return found if found["format"] == _FORMAT else {}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}


def _write(path: str, content: dict[str, Any]) -> None:
    """Wholly or not at all, and for the user's eyes alone."""
    unfinished = f"{path}.{os.urandom(6).hex()}"
    try:
        with open(unfinished, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as stream:
            stream.write(json.dumps(content, separators=(",", ":")).encode())
        os.replace(unfinished, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)
        raise


def forget(path: str, tops: Iterable[str]) -> list[str]:
    """Take away, in the folder at `path`, what is remembered of the projects in the real folders `tops`; which projects these were.
    Raises OSError."""
    gone: set[str] = set()
    _check_own(path)
    for file in _own_files(path):
        root = _content(file).get("root", "")
        if not root or any(is_below(root, top) for top in tops):
            os.unlink(file)
            gone.add(root)
    return sorted(gone - {""})


class Cache:
    """The entries of one project under one configuration, in the user's folder for those of many or the one that is `given`.
    `load` reads them; `save` writes what `put` added."""

    def __init__(self, given: str | None, root: str, digest: str) -> None:
        self.folder = os.path.abspath(given) if given else users_folder()
        self._is_given = bool(given)
        self._root = os.path.realpath(root)
        place = hashlib.blake2b(self._root.encode("utf-8", "surrogateescape"), digest_size=12).hexdigest()
        self._path = os.path.join(self.folder, f"{place}-{digest}.json")
        self._entries: dict[str, Any] = {}
        self._added: dict[str, Any] = {}

    def load(self) -> None:
        """Read what earlier runs have written. Raises `Foreign`."""
        if self._is_given:
            _check_outside(self.folder, self._root)
        try:
            _check_own(self.folder)
            self._entries = self._read()
        except Foreign:
            raise
        except OSError:  # none has
            pass

    def get(self, path: str, digest: str, hash_of: Callable[[str], str]) -> FileResult | None:
        """What was found in the file at `path` whose content has the hash `digest`, or None.

        `hash_of` gives the content hash of a dependency, `ABSENT` where it cannot be read.
        """
        stored = self._entries.get(path)
        # Most files have neither findings nor dependencies: their entry is the hash alone
        if stored == digest:
            return FileResult()
        if not isinstance(stored, list) or not stored or stored[0] != digest:
            return None
        try:
            _, findings, doubtful, dependencies = stored
            known = tuple((other, value) for other, value in dependencies)
            if any(hash_of(other) != value for other, value in known):
                return None
            return FileResult(tuple(map(Finding.from_json, findings)), int(doubtful), known)
        except (KeyError, TypeError, ValueError, AttributeError):
            return None

    def put(self, path: str, digest: str, result: FileResult) -> None:
        """Remember what was found in the file at `path` whose content has the hash `digest`, and what that rests on."""
        findings = [finding.to_json() for finding in result.findings]
        kept = (findings, result.doubtful, result.dependencies)
        self._added[path] = [digest, *kept] if any(kept) else digest

    def save(self) -> None:
        """Write the added entries, beside those that another process may have written in the meantime."""
        if not self._added:
            return
        with contextlib.suppress(OSError):
            os.makedirs(self.folder, 0o700, exist_ok=True)
            _check_own(self.folder)
            known = self._read()
            still = {path: stored for path, stored in known.items() if os.path.exists(path)}
            _write(self._path, {"format": _FORMAT, "root": self._root, "entries": still | self._added})
            if not known:
                _sweep(self.folder)
            self._added = {}

    def _read(self) -> dict[str, Any]:
        entries = _content(self._path).get("entries")
        return entries if isinstance(entries, dict) else {}


def _sweep(folder: str) -> None:
    """Take out what no run has written for a month: projects that are gone, other configurations, runs that died."""
    limit = time.time() - _STALE_SECONDS
    for file in _own_files(folder):
        if os.lstat(file).st_mtime < limit:
            os.unlink(file)


def run_digest(settings: str, rule_files: tuple[str, ...] = ()) -> str:
    """A digest of what findings depend on besides the checked files.

    That is the settings, gpulint's own sources, a project's own rules, and the Python version, whose parser
    decides what is a syntax error. Sources are taken by content, so that a cache carried from one machine to
    the next holds.
    """
    digest = hashlib.blake2b(digest_size=12)
    digest.update(repr((__version__, sys.version_info[:2], settings)).encode("utf-8", "surrogatepass"))
    for path in (*_own_sources(), *rule_files):
        try:
            with open(path, "rb") as stream:
                digest.update(content_hash(stream.read()).encode())
        except OSError:
            digest.update(b"-")
    return digest.hexdigest()


def _own_sources() -> list[str]:
    """The modules whose change may change findings: everything but the commands, reports and the runtime."""
    import gpulint.rules

    home = os.path.abspath(os.path.join(__file__, "..", ".."))
    rules = os.path.dirname(os.path.abspath(gpulint.rules.__file__ or home))
    trees = (*(os.path.join(home, room) for room in ("analysis", "fix", "lint", "source")), rules)
    walked = [next(os.walk(home), (home, [], [])), *(one for tree in trees for one in os.walk(tree))]
    return sorted(
        {os.path.join(folder, name) for folder, _, names in walked for name in names if name.endswith(".py")}
    )
