"""What a program's settings are by default: of its own command line, or of all command lines of its project, where they agree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from gpulint.analysis.code.command_line import agreeing, read_defaults
from gpulint.analysis.file.lookup import with_words
from gpulint.analysis.questions.size.built import UNKNOWN

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_ADDING = frozenset({"add_argument"})
_kept: WeakKeyDictionary[FileAnalysis, Mapping[str, object]] = WeakKeyDictionary()


def argument_defaults(file: FileAnalysis) -> Mapping[str, object]:
    """Those of the file's own command line, by the attribute that the parsed arguments have for each."""
    known = _kept.get(file)
    if known is None:
        adds = any(True for _ in with_words(file, _ADDING))
        known = _kept[file] = agreeing([read_defaults(file.module.body.origin)]) if adds else {}
    return known


def setting(file: FileAnalysis, name: str) -> object:
    """The default of `args.name` in a file; `UNKNOWN` where no command line has it, or several differ."""
    own = argument_defaults(file)
    if name in own or file.project is None:
        return own.get(name, UNKNOWN)
    return file.project.command_line(file.filename).get(name, UNKNOWN)
