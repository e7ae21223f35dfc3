"""What earlier runs found, so that an unchanged file is neither gated nor parsed again.

One JSON file for each project and configuration, named by a digest of everything that findings depend on
besides the files themselves. An entry holds while the file and all files it depended on have the same
content. A cache that is missing, corrupt or cannot be written costs time, never correctness, and is no error.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from gpulint.atomic import write_atomic
from gpulint.findings import Finding
from gpulint.source.files import content_hash
from gpulint.version import __version__

DIRECTORY: Final = ".gpulint_cache"
_FORMAT: Final = 5
_IGNORED: Final = "# Written by gpulint.\n*\n"  # the cache's .gitignore
_ENTRIES: Final = re.compile(r"[0-9a-f]{24}\.json")
_STALE_SECONDS: Final = 30 * 24 * 3600
# A file that is not there, as a dependency: its appearance changes what the dependent file means.
ABSENT: Final = ""


def remove_cache(directory: str) -> bool:
    """Take away what `Cache` has written in a directory, and the directory where nothing else is in it; whether there was
    something. Raises OSError."""
    written = [entry for folder in _entries(directory) if folder.is_dir() for entry in _entries(folder.path)]
    ours = [entry.path for entry in written if _ENTRIES.fullmatch(entry.name)]
    for path in ours:
        os.unlink(path)
    ignore = os.path.join(directory, ".gitignore")
    with contextlib.suppress(OSError), open(ignore, encoding="utf-8") as stream:
        if stream.read() == _IGNORED:
            ours.append(ignore)
            os.unlink(ignore)
    for folder in (*sorted({os.path.dirname(path) for path in ours}, key=len, reverse=True), directory):
        with contextlib.suppress(OSError):  # something else is in it
            os.rmdir(folder)
    return bool(ours)


def caches_below(top: str) -> Iterator[str]:
    """The caches of projects in `top` and the directories below, links not followed."""
    for folder, names, _ in os.walk(top):
        if DIRECTORY in names:
            names.remove(DIRECTORY)
            yield os.path.join(folder, DIRECTORY)
        names[:] = [name for name in names if name not in (".git", "node_modules")]


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """The findings of one file, how many are less certain than asked for, and the other files they depend on as (absolute
    path, content hash)."""

    findings: tuple[Finding, ...] = ()
    doubtful: int = 0
    dependencies: tuple[tuple[str, str], ...] = ()


class Cache:
    """The entries of one project under one configuration. `save` writes what `put` added."""

    def __init__(self, directory: str, root: str, digest: str) -> None:
        self._directory = directory
        self._root = root
        self._file = os.path.join(directory, __version__, f"{digest}.json")
        self._entries: dict[str, Any] | None = None
        self._added: dict[str, Any] = {}

    def get(self, path: str, digest: str, hash_of: Callable[[str], str]) -> CacheEntry | None:
        """The entry of the file at `path` whose content has the hash `digest`, or None.

        `hash_of` gives the content hash of a dependency, `ABSENT` where it cannot be read.
        """
        stored = self._loaded().get(self._key(path))
        if (
            stored == digest
        ):  # most files have neither findings nor dependencies: their entry is the hash alone
            return CacheEntry()
        if not isinstance(stored, list) or not stored or stored[0] != digest:
            return None
        try:
            _, findings, doubtful, dependencies = stored
            known = tuple((self._absolute(other), value) for other, value in dependencies)
            if any(hash_of(other) != value for other, value in known):
                return None
            return CacheEntry(tuple(self._finding(path, data) for data in findings), int(doubtful), known)
        except (KeyError, TypeError, ValueError, AttributeError):
            return None

    def put(self, path: str, digest: str, entry: CacheEntry) -> None:
        """Remember `entry` for the file at `path` whose content has the hash `digest`."""
        stored: Any = digest
        if entry != CacheEntry():
            findings = [self._stored_finding(path, finding) for finding in entry.findings]
            dependencies = [[self._key(other), value] for other, value in entry.dependencies]
            stored = [digest, findings, entry.doubtful, dependencies]
        self._added[self._key(path)] = stored

    def save(self) -> None:
        """Write the added entries, beside those that another process may have written in the meantime."""
        if not self._added:
            return
        self._entries = None
        entries = self._loaded()
        entries.update(self._added)
        entries = {key: value for key, value in entries.items() if self._is_wanted(key)}
        try:
            self._write(json.dumps({"format": _FORMAT, "entries": entries}, separators=(",", ":")))
        except OSError:
            return
        self._added = {}

    def _is_wanted(self, key: str) -> bool:
        return key in self._added or os.path.exists(self._absolute(key))

    def _write(self, text: str) -> None:
        folder = os.path.dirname(self._file)
        fresh = not os.path.isdir(self._directory)
        os.makedirs(folder, exist_ok=True)
        if fresh or not os.path.exists(os.path.join(self._directory, ".gitignore")):
            with open(os.path.join(self._directory, ".gitignore"), "w", encoding="utf-8") as stream:
                stream.write(_IGNORED)
        write_atomic(self._file, text.encode("utf-8", "surrogatepass"), durable=False)
        self._sweep(folder)

    def _sweep(self, folder: str) -> None:
        """Take out what no run has written for a month: other configurations, workers that died."""
        limit = time.time() - _STALE_SECONDS
        with os.scandir(folder) as listing:
            for entry in listing:
                if entry.stat().st_mtime < limit:
                    os.unlink(entry.path)

    def _loaded(self) -> dict[str, Any]:
        if self._entries is None:
            self._entries = _read(self._file)
        return self._entries

    def _key(self, path: str) -> str:
        prefix = self._root.rstrip(os.sep) + os.sep
        return path[len(prefix) :] if path.startswith(prefix) else path

    def _absolute(self, key: str) -> str:
        return os.path.join(self._root, key)

    def _stored_finding(self, path: str, finding: Finding) -> dict[str, Any]:
        """A finding with file names that stay true when the project is moved."""
        data = finding.to_json()
        del data["url"]
        data["filename"] = "" if finding.filename == path else self._key(finding.filename)
        for other in data["related"]:
            other["filename"] = "" if other["filename"] == path else self._key(other["filename"])
        return data

    def _finding(self, path: str, data: dict[str, Any]) -> Finding:
        data = dict(data, filename=self._restored(path, data["filename"]))
        data["related"] = [
            dict(other, filename=self._restored(path, other["filename"])) for other in data["related"]
        ]
        return Finding.from_json(data)

    def _restored(self, path: str, name: str) -> str:
        return self._absolute(name) if name else path


def _read(file: str) -> dict[str, Any]:
    try:
        with open(file, encoding="utf-8", errors="surrogatepass") as stream:
            data = json.load(stream)
        if data["format"] == _FORMAT and isinstance(data["entries"], dict):
            entries: dict[str, Any] = data["entries"]
            return entries
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass
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
    found = [entry.path for entry in _entries(home)]
    found += [
        os.path.join(folder, name) for tree in trees for folder, _, names in os.walk(tree) for name in names
    ]
    return sorted({path for path in found if path.endswith(".py")})


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        return list(os.scandir(folder))
    except OSError:
        return []
