"""Writing a file so that, killed at any moment, it is either the old one or the new one.

The new content is written beside the file under a name that says whose it is. Killed before it takes the file's name, it
stays; whoever next writes to the folder, or searches it, takes it out.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Final

from gpulint.bounds import real_path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_REASONS = {
    errno.ENOSPC: "no space is left on the disk",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file would be larger than is allowed",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "permission denied: a new file cannot be made in its directory",
    errno.EPERM: "permission denied: a new file cannot be made in its directory",
}

# `.train.py.gpulint-4711-183746-k3x_1b9q.tmp`: the file that is written, the writer's process and when that started.
_NAME: Final = re.compile(r"\..+\.gpulint-(?P<process>\d+)-(?P<started>\d+)-\w+\.tmp")
_SUFFIX: Final = ".tmp"
_PLAIN: Final = getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
# Seconds after which nobody is still writing, where this cannot be told otherwise
_LONG_AGO: Final = 24 * 3600.0
_MANY_NAMES: Final = (
    "the file has other names (hard links), which would keep the old content; "
    "it is unchanged: put a copy in its place first"
)
# What is no file to be replaced, though it may lead to one: `--output-file /dev/stdout >report`.
_STREAM: Final = re.compile(r"/dev/(?:[^/]+|fd/\d+|pts/\d+)|/proc/(?:self|\d+)/fd/\d+")


def write_atomic(path: str, data: bytes) -> None:
    """Replace the content of the file at `path`, keeping its mode, and its owner where that is permitted.

    A symbolic link is followed, so the link stays, but never out of its project (`bounds.LeadsOut`); of a file with other
    names, hard links, these would keep the old content, so it is not written. The new content is on the disk before it takes
    the name. Raises OSError, its `strerror` a phrase with the reason; the file is then unchanged and no temporary file left.
    """
    write_atomic_with(target_of(path), lambda stream: stream.write(data))


def target_of(path: str) -> str:
    """The file that `write_atomic` gives new content. Raises OSError, its `strerror` a sentence, where its links or its other
    names forbid that."""
    target = path if _is_stream(path) else real_path(path)
    if os.path.isfile(target) and os.stat(target).st_nlink > 1:
        raise OSError(errno.EMLINK, _MANY_NAMES, path)
    return target


def write_atomic_with(path: str, write: Callable[[IO[bytes]], object]) -> int:
    """The same with content that `write` puts into an open file, and for a path whose links are the caller's own: wherever they
    lead. Its size in bytes. What `write` raises goes on, and the file is unchanged then too."""
    if _is_stream(path):
        with open(path, "wb") as stream:
            write(stream)
            return os.fstat(stream.fileno()).st_size
    target = os.path.realpath(path)
    try:
        return _replace(target, write)
    except OSError as error:
        number = error.errno or errno.EIO
        reason = _REASONS.get(number, error.strerror or str(error))
        raise OSError(number, f"{reason}; the file is unchanged", path) from error


@contextmanager
def one_at_a_time(path: str) -> Iterator[None]:
    """While one process is in here for files of the folder of `path`, others wait: for a file that is read, changed and written.

    The lock is on the folder itself, so no file is left. Where there are no such locks (Windows, some network file
    systems) nobody waits."""
    try:
        handle = os.open(os.path.dirname(os.path.realpath(path)), os.O_RDONLY | _PLAIN)
    except OSError:
        yield
        return
    try:
        if fcntl is not None:
            with suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _is_stream(path: str) -> bool:
    return _STREAM.fullmatch(os.path.abspath(path)) is not None


def is_leftover(name: str) -> bool:
    """Whether a file's name is one under which new content waits for its place."""
    return name.endswith(_SUFFIX) and _NAME.fullmatch(name) is not None


def sweep(path: str) -> None:
    """Take out what a writer has left that was killed: the file at `path`, or those in the folder there."""
    with suppress(OSError):
        names = os.listdir(path) if os.path.isdir(path) else [""]
        for name in names:
            file = os.path.join(path, name) if name else path
            if is_leftover(os.path.basename(file)) and _is_abandoned(file):
                with suppress(OSError):
                    os.unlink(file)


def _is_abandoned(file: str) -> bool:
    """Whether nobody will finish a file: its writer, who holds a lock on it, is gone. A writer in another container has a
    number of its own, but the lock of all."""
    match = _NAME.fullmatch(os.path.basename(file))
    try:
        found = os.lstat(file)
        if match is None or not stat.S_ISREG(found.st_mode):
            return False
        if fcntl is None:
            return found.st_mtime < time.time() - _LONG_AGO
        handle = os.open(file, os.O_RDONLY | _PLAIN)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return found.st_mtime < time.time() - _LONG_AGO
    finally:
        os.close(handle)
    return not _lives(int(match["process"]), match["started"])


def _lives(process: int, started: str) -> bool:
    if os.path.exists("/proc/self/stat"):
        return _started(process) == started
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _started(process: int) -> str:
    """When a process started, in the system's ticks: numbers of processes come again. "0" where it has ended, or where
    the system does not tell."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as stream:
            fields = stream.read().rpartition(")")[2].split()
        return "0" if fields[0] in "ZX" else fields[19]
    except (OSError, IndexError):
        return "0"


def _replace(target: str, write: Callable[[IO[bytes]], object]) -> int:
    try:
        old: os.stat_result | None = os.stat(target)
    except FileNotFoundError:
        old = None
    if old is not None and not stat.S_ISREG(old.st_mode):
        raise OSError(errno.EINVAL, "is a directory, pipe, socket or device, not a file", target)
    if old is not None and not os.access(target, os.W_OK):
        raise OSError(errno.EACCES, "permission denied", target)
    folder, name = os.path.split(target)
    sweep(folder or ".")
    own = os.getpid()
    unique = os.urandom(6).hex()
    temporary = os.path.join(folder, f".{name[:40]}.gpulint-{own}-{_started(own)}-{unique}{_SUFFIX}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _PLAIN, 0o600)
    lock = -1
    try:
        if fcntl is not None:
            lock = os.dup(handle)  # held until the file has its name, which is after it is closed
            with suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with os.fdopen(handle, "wb") as stream:
            write(stream)
            stream.flush()
            size = os.fstat(stream.fileno()).st_size
            _copy_metadata(target, old, temporary)
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    finally:
        if lock != -1:
            os.close(lock)
    _sync_folder(folder or ".")
    return size


def _copy_metadata(target: str, old: os.stat_result | None, temporary: str) -> None:
    if old is None:
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        return
    new = os.stat(temporary)
    if hasattr(os, "chown") and (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        with suppress(OSError):
            os.chown(temporary, -1, old.st_gid)
        with suppress(OSError):
            os.chown(temporary, old.st_uid, -1)
    if hasattr(os, "listxattr"):
        with suppress(OSError):
            for attribute in os.listxattr(target):
                with suppress(OSError):
                    os.setxattr(temporary, attribute, os.getxattr(target, attribute))
    os.chmod(temporary, stat.S_IMODE(old.st_mode))


def _sync_folder(folder: str) -> None:
    """Make the new name outlast a power cut. Not every system can; the content is safe either way."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
