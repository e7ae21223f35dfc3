"""The numbers and words that a program's command line has by default: `parser.add_argument("--width", default=64)`."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from gpulint.analysis.code import ir
from gpulint.analysis.file.lookup import with_words

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_ADDING = frozenset({"add_argument"})
_kept: WeakKeyDictionary[FileAnalysis, dict[str, object]] = WeakKeyDictionary()


def argument_defaults(file: FileAnalysis) -> dict[str, object]:
    """By the attribute that the parsed arguments have for it; what is added twice, with two defaults, is left out."""
    known = _kept.get(file)
    if known is None:
        known = _kept[file] = _read(file)
    return known


def _read(file: FileAnalysis) -> dict[str, object]:
    found: dict[str, object] = {}
    twice: set[str] = set()
    for function in with_words(file, _ADDING):
        for _, call in ir.calls(function.body):
            default = call.keyword("default")
            if call.method != "add_argument" or not isinstance(default, ir.Const):
                continue
            flags = [a.value for a in call.args if isinstance(a, ir.Const) and isinstance(a.value, str)]
            named = call.keyword("dest")
            name = named.value if isinstance(named, ir.Const) else _attribute(flags)
            if not isinstance(name, str) or not isinstance(default.value, (int, float, str)):
                continue
            if found.get(name, default.value) != default.value:
                twice.add(name)
            found[name] = default.value
    return {name: value for name, value in found.items() if name not in twice}


def _attribute(flags: list[str]) -> str | None:
    """`hidden_size` of `-H`, `--hidden-size`."""
    long = [flag for flag in flags if flag.startswith("--")] or flags
    return long[0].lstrip("-").replace("-", "_") if long else None
