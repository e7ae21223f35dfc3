"""Writing a file so that, killed at any moment, it is either the old one or the new one.

The new content is written beside the file and then takes its name. A writer that is killed in between leaves it there, under a
name that says whose it is: `.train.py.gpulint-k3x_1b9q.tmp`.
"""

from __future__ import annotations

import errno
import os
import re
import stat
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
        handle = os.open(os.path.dirname(os.path.realpath(path)), os.O_RDONLY)
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


def _replace(target: str, write: Callable[[IO[bytes]], object]) -> int:
    import tempfile  # not with the module: it takes ten milliseconds to import

    try:
        old: os.stat_result | None = os.stat(target)
    except FileNotFoundError:
        old = None
    if old is not None and not stat.S_ISREG(old.st_mode):
        raise OSError(errno.EINVAL, "is a directory, pipe, socket or device, not a file", target)
    if old is not None and not os.access(target, os.W_OK):
        raise OSError(errno.EACCES, "permission denied", target)
    folder, name = os.path.split(target)
    handle, temporary = tempfile.mkstemp(".tmp", f".{name[:40]}.gpulint-", folder or ".")
    try:
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
