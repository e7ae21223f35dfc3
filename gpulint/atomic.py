"""Writing a file so that, killed at any moment, it is either the old one or the new one."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from typing import IO

_REASONS = {
    errno.ENOSPC: "no space is left on the disk",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file would be larger than is allowed",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "permission denied: a new file cannot be made in its directory",
    errno.EPERM: "permission denied: a new file cannot be made in its directory",
}


def write_atomic(path: str, data: bytes) -> None:
    """Replace the content of the file at `path`, keeping its mode, and its owner where that is permitted.

    A symbolic link is followed, so the link stays. The new content is on the disk before it takes the name.
    Raises OSError, its `strerror` a phrase with the reason; the file is then unchanged and no temporary file
    left.
    """
    write_atomic_with(path, lambda stream: stream.write(data))


def write_atomic_with(path: str, write: Callable[[IO[bytes]], object]) -> int:
    """The same with content that `write` puts into an open file; its size in bytes. What `write` raises goes on, and
    the file is unchanged then too."""
    target = os.path.realpath(path)
    try:
        return _replace(target, write)
    except OSError as error:
        number = error.errno or errno.EIO
        reason = _REASONS.get(number, error.strerror or str(error))
        raise OSError(number, f"{reason}; the file is unchanged", path) from error


def _replace(target: str, write: Callable[[IO[bytes]], object]) -> int:
    try:
        old: os.stat_result | None = os.stat(target)
    except FileNotFoundError:
        old = None
    if old is not None and not os.access(target, os.W_OK):
        raise OSError(errno.EACCES, "permission denied", target)
    folder, name = os.path.split(target)
    handle, temporary = tempfile.mkstemp(prefix=f".{name[:100]}.", suffix=".tmp", dir=folder or ".")
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
