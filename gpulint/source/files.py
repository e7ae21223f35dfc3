"""What a file is (bytes, text, encoding, newlines) and which files a command means.

A text keeps its own newlines and is never translated, so encoding it again gives back the same bytes.
"""

from __future__ import annotations

import codecs
import contextlib
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

MAX_SIZE: Final = 600_000  # bytes of one module that is looked into
MAX_TEXT: Final = 2_000_000  # characters of one text that is analysed: a hundred times as much memory
MAX_READ: Final = 32_000_000  # bytes of one file that is read, pictures in notebooks among them
SKIPPED_FOLDERS: Final = frozenset({"node_modules", "site-packages", "build", "dist", "__pycache__", "venv"})
NOTEBOOK_SUFFIX: Final = ".ipynb"
_EVERY: Final = "*.py"
_COOKIE: Final = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_BLANK: Final = re.compile(rb"^[ \t\f]*(?:#.*)?$")
_NEWLINE: Final = re.compile(r"\r\n|\r|\n")
_BYTE_NEWLINE: Final = re.compile(rb"\r\n|\r|\n")
# UTF-8 to all but the Pythons that did not know f-strings. None that is in use knows this encoding.
_F_STRINGS: Final = re.compile(rb"^([ \t\f]*#.*?coding[:=][ \t]*)future[-_]fstrings\b", re.MULTILINE)
_FOREIGN_BOMS: Final = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


class TextError(Exception):
    """Something is wrong with a text at `line`, `column`, both from 1: one sentence. `old`: an older Python reads it."""

    old = False

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column


class FileError(TextError):
    """A file cannot be read as Python source. Reported as GPU000 there.

    `name` is the kebab-case name of the diagnostic, such as ``unreadable-file`` or ``invalid-encoding``.
    """

    def __init__(self, name: str, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message, line, column)
        self.name = name


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file as read: `raw` bytes and the same as `text`, newlines untouched, without the byte order mark."""

    path: str
    raw: bytes
    text: str
    encoding: str
    bom: bool

    def encode(self, text: str) -> bytes:
        """`text` as bytes of this file. Raises `FileError` for a character the file's encoding lacks."""
        try:
            data = text.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise FileError(
                "invalid-encoding", f"{text[error.start]!r} cannot be written in {self.encoding}"
            ) from None
        return codecs.BOM_UTF8 + data if self.bom else data

    @property
    def survives_rewriting(self) -> bool:
        """Whether encoding the unchanged text gives back the bytes that were read."""
        try:
            return self.encode(self.text) == self.raw
        except FileError:
            return False


def read_bytes(path: str, most: int = MAX_READ) -> bytes:
    """The bytes of the file at `path`: of a plain file, and no more than `most`, so that nothing that a repository has in its
    place can hold up or fill who reads it. Raises `FileError` with a sentence for whatever prevents that."""
    try:
        with open(path, "rb", opener=_open_at_once) as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise FileError("unreadable-file", "is a pipe, socket or device, not a file")
            raw = stream.read(most + 1)
    except OSError as error:
        raise FileError("unreadable-file", why_unreadable(path, error)) from None
    except ValueError:
        raise FileError("unreadable-file", "no such file: there is a NUL in its name") from None
    if len(raw) > most:
        raise FileError("too-large", f"is larger than {most / 1e6:g} MB: gpulint does not read it")
    return raw


def _open_at_once(path: str, flags: int) -> int:
    """Opens a pipe too without waiting for somebody at its other end."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def why_unreadable(path: str, error: OSError) -> str:
    """One phrase for what an operating system error on `path` means."""
    if isinstance(error, FileNotFoundError):
        if os.path.islink(path):
            return f"broken symbolic link: {os.readlink(path)} does not exist"
        return "no such file or directory"
    if isinstance(error, PermissionError):
        return "permission denied"
    if isinstance(error, IsADirectoryError):
        return "is a directory"
    if os.path.islink(path) and "symbolic" in (error.strerror or ""):
        return "symbolic link that leads back to itself"
    return f"cannot be read: {error.strerror or error}"


def decode(path: str, raw: bytes) -> SourceFile:
    """The source in `raw`, decoded as Python would: byte order mark, coding cookie, otherwise UTF-8.

    Raises `FileError` with the place of the first byte that does not fit.
    """
    for mark, name in _FOREIGN_BOMS:
        if raw.startswith(mark):
            raise FileError(
                "invalid-encoding", f"{name} text; Python source must be UTF-8 or name its encoding"
            )
    bom = raw.startswith(codecs.BOM_UTF8)
    body = raw[3:] if bom else raw
    encoding = _encoding(body, bom)
    nul = body.find(b"\0")
    if nul >= 0:
        raise FileError("invalid-source", "contains a NUL byte; is this a Python file?", *_place(body, nul))
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError as error:
        byte = body[error.start] if error.start < len(body) else 0
        shown = "UTF-8" if encoding == "utf-8" else encoding
        raise FileError(
            "invalid-encoding",
            f"not valid {shown}: byte 0x{byte:02x}; "
            "save the file as UTF-8 or name its encoding in a coding comment",
            *_place(body, error.start),
        ) from None
    except Exception as error:  # a codec of another kind (hex, zlib) fails in its own ways
        raise FileError("invalid-encoding", f"cannot be decoded as {encoding}: {error}") from None
    return SourceFile(path, raw, text, encoding, bom)


def for_parser(raw: bytes) -> bytes:
    """The bytes of a file as Python's own parser takes them."""
    return _F_STRINGS.sub(rb"\1utf-8", raw, count=1) if b"fstrings" in raw[:200] else raw


def read_source(path: str) -> SourceFile:
    """`read_bytes` and `decode` in one."""
    return decode(path, read_bytes(path))


def _encoding(body: bytes, bom: bool) -> str:
    head = body[:4096]
    if b"coding" not in head:
        return "utf-8"
    for row, line in enumerate(_BYTE_NEWLINE.split(head, maxsplit=2)[:2], start=1):
        found = _COOKIE.match(line)
        if found:
            return _known_encoding(found[1].decode("ascii", "replace"), row, found.start(1) + 1, bom)
        if not _BLANK.match(line):
            break
    return "utf-8"


def _known_encoding(name: str, row: int, column: int, bom: bool) -> str:
    if name in ("future_fstrings", "future-fstrings"):
        return "utf-8"
    try:
        codec = codecs.lookup(name)
    except LookupError:
        raise FileError(
            "invalid-encoding", f"unknown encoding {name!r} in the coding comment", row, column
        ) from None
    if not getattr(codec, "_is_text_encoding", True):
        raise FileError(
            "invalid-encoding", f"{name!r} in the coding comment is no text encoding", row, column
        )
    if codec.name in ("utf-8", "utf-8-sig"):
        return "utf-8"
    if bom:
        message = f"starts with a UTF-8 byte order mark, but the coding comment says {name!r}"
        raise FileError("invalid-encoding", message, row, column)
    return codec.name


def _place(body: bytes, offset: int) -> tuple[int, int]:
    """Row and column of a byte; the column counts characters as far as the line before it decodes as UTF-8."""
    before = body[:offset]
    lines = _BYTE_NEWLINE.split(before)
    return len(lines), len(lines[-1].decode("utf-8", "replace")) + 1


def is_notebook(path: str) -> bool:
    """Whether a path is that of a Jupyter notebook."""
    return path.endswith(NOTEBOOK_SUFFIX)


def split_lines(text: str) -> list[str]:
    """The lines of `text` without their ends, split where Python splits: never at form feeds or U+2028."""
    return _NEWLINE.split(text)


def content_hash(raw: bytes) -> str:
    """The hash that stands for a file's content, in caches and among what findings depend on."""
    return hashlib.blake2b(raw, digest_size=16).hexdigest()


def python_files(root: str) -> Iterator[tuple[str, bytes]]:
    """Files below a folder with their bytes: at most 4,000 of them and 24 MB, folders like virtual environments left out."""
    count = size = 0
    for folder, _, names in walk(root):
        for path in (os.path.join(folder, name) for name in names if name.endswith(".py")):
            try:
                raw = read_bytes(path)[: MAX_SIZE + 1]
            except FileError:
                continue
            count, size = count + 1, size + len(raw)
            if count > 4_000 or size > 24_000_000:
                return
            yield path, raw


def walk(root: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """As `os.walk`, which Python before 3.12 ends where folders are nested a thousand deep: each folder with the names of the
    folders and of what else is in it, hidden folders and those like virtual environments left out."""
    pending = [root]
    while pending:
        folder = pending.pop()
        folders: list[str] = []
        names: list[str] = []
        with contextlib.suppress(OSError), os.scandir(folder) as listing:
            for entry in listing:
                (folders if entry.is_dir(follow_symlinks=False) else names).append(entry.name)
        folders = sorted(n for n in folders if not n.startswith(".") and n not in SKIPPED_FOLDERS)
        yield folder, folders, sorted(names)
        pending += [os.path.join(folder, name) for name in reversed(folders)]


def every_file(root: str) -> str:
    """What stands for all of a folder's Python files, among what findings depend on."""
    return os.path.join(root, _EVERY)


def hash_of_every(path: str) -> str | None:
    """The hash of all the files that `every_file` stands for; None for the path of one file."""
    root, name = os.path.split(path)
    return tree_hash(python_files(root)) if name == _EVERY else None


def tree_hash(files: Iterable[tuple[str, bytes]]) -> str:
    """The hash of files with their names: another one where a file comes, goes or changes."""
    return content_hash(
        "".join(f"{path} {content_hash(raw)}\n" for path, raw in files).encode("utf-8", "surrogateescape")
    )
