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

FORMER: Final = ".gpulint_cache"  # in the project: where it was once
_FORMAT: Final = 6
# With the last, not yet whole
_OURS: Final = re.compile(r"[0-9a-f]{24}-[0-9a-f]{24}\.json(?:\.[0-9a-f]{12})?")
_STALE_SECONDS: Final = 30 * 24 * 3600
# A file that is not there, as a dependency: its appearance changes what the dependent file means.
ABSENT: Final = ""
# By system: the variable with the place of users' caches, and where in their home that is without it.
_PLACES: Final = {"win32": ("LOCALAPPDATA", "AppData/Local"), "darwin": ("", "Library/Caches")}
_CAN_HOLD: Final = os.name == "posix"
_PLAIN: Final = getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


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


class _Folder:
    """A folder that only its user writes to, open: no other can take its place, and no name in it is followed as a link. On
    Windows, which has no such handles, its path stands for it.

    Raises OSError, and `Foreign` where others may write to it.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._handle: int | None = None

    def __enter__(self) -> _Folder:
        if _CAN_HOLD:
            self._handle = _held(self._path)
        return self

    def __exit__(self, *_: object) -> None:
        if self._handle is not None:
            os.close(self._handle)

    def names(self) -> list[str]:
        """What is in it that is ours."""
        return [
            name
            for name in os.listdir(self._path if self._handle is None else self._handle)
            if _OURS.fullmatch(name)
        ]

    def read(self, name: str) -> bytes:
        """The content of a file; nothing where there is none, or something else in its place."""
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)
        with contextlib.suppress(OSError), os.fdopen(self._open(name, flags), "rb") as stream:
            if stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                return stream.read()
        return b""

    def write(self, name: str, data: bytes) -> None:
        """Wholly or not at all."""
        unfinished = f"{name}.{os.urandom(6).hex()}"
        try:
            with os.fdopen(self._open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as stream:
                stream.write(data)
            source, target = self._place(unfinished), self._place(name)
            os.replace(source, target, src_dir_fd=self._handle, dst_dir_fd=self._handle)
        except BaseException:
            with contextlib.suppress(OSError):
                self.remove(unfinished)
            raise

    def written(self, name: str) -> float:
        """When, in seconds of the system's clock."""
        return os.stat(self._place(name), dir_fd=self._handle, follow_symlinks=False).st_mtime

    def remove(self, name: str) -> None:
        os.unlink(self._place(name), dir_fd=self._handle)

    def _open(self, name: str, flags: int) -> int:
        return os.open(self._place(name), flags | _PLAIN, 0o600, dir_fd=self._handle)

    def _place(self, name: str) -> str:
        return os.path.join(self._path, name) if self._handle is None else name


def _held(path: str) -> int:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _PLAIN)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise Foreign(path, "it is a file or a link") from None
        raise
    found = os.fstat(handle)
    if found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return handle
    os.close(handle)
    whose = "others may write to it" if found.st_uid == os.geteuid() else "it belongs to another user"
    raise Foreign(path, f"{whose}; name a folder of your own, or none")


def forget(path: str, tops: Iterable[str]) -> list[str]:
    """Take away, in the folder at `path`, what is remembered of the projects in the real folders `tops`; which projects these were.
    Raises OSError."""
    gone: set[str] = set()
    with _Folder(path) as folder:
        for name in folder.names():
            root = _loads(folder.read(name)).get("root", "")
            if not root or any(is_below(root, top) for top in tops):
                folder.remove(name)
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
        self._name = f"{place}-{digest}.json"
        self._entries: dict[str, Any] = {}
        self._added: dict[str, Any] = {}

    def load(self) -> None:
        """Read what earlier runs have written. Raises `Foreign`."""
        if self._is_given:
            _check_outside(self.folder, self._root)
        try:
            with _Folder(self.folder) as folder:
                self._entries = self._read(folder)
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
            with _Folder(self.folder) as folder:
                known = self._read(folder)
                entries = {
                    path: stored for path, stored in known.items() if os.path.exists(path)
                } | self._added
                data = {"format": _FORMAT, "root": self._root, "entries": entries}
                folder.write(self._name, json.dumps(data, separators=(",", ":")).encode())
                if not known:
                    _sweep(folder)
                self._added = {}

    def _read(self, folder: _Folder) -> dict[str, Any]:
        entries = _loads(folder.read(self._name)).get("entries")
        return entries if isinstance(entries, dict) else {}


def _sweep(folder: _Folder) -> None:
    """Take out what no run has written for a month: projects that are gone, other configurations, runs that died."""
    limit = time.time() - _STALE_SECONDS
    for name in folder.names():
        if folder.written(name) < limit:
            folder.remove(name)


def _loads(data: bytes) -> dict[str, Any]:
    """What is in a file of ours; nothing where it is none, or another version's."""
    try:
        found = json.loads(data)
        return found if found["format"] == _FORMAT else {}
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}


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
