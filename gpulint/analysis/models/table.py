"""The transfer table: what an operation does to a value. Read once, used backwards (what does this call give?) and forwards (what
becomes of the value that it is given?).

A row of a data file says it of several names at once::

    [[row]]
    of = "tensor"                  # whose method, or the module that the function is in
    names = "detach"               # `*` stands for all others
    graph = "cuts"

Columns: `graph`: `keeps` it (a result that gradients flow through), `cuts` it, or gives what has `none`; `gives`: the kind of the
result, `receiver` where it is the same object, `argument` where it is the first argument; `view`: the result shares its storage;
`reads`: the value becomes numbers on the host; `numbers`: what it is given becomes numbers there, sizes and places; `device`: of the result; `size`: of the result, `more` where one number becomes several, `few` of them for each token; `does`: the event that it is, `takes form` where the arguments
give no more than a shape, a type or places, `sized by values` where the host has to wait for how large the result is (of some only where they are given one thing `alone`), `masks` where the result says what holds, `asks each` thing in what it is given whether it holds, or comes first, `takes part` of it where other arguments say which, `draws` where what a distribution gives has no graph, unless it is one that nobody sees, `encodes` of a constructor where the methods of what it makes give arrays without a graph;
`saves` of a loss: what it keeps for its backward; `fills` of what makes a tensor, or fills it: with numbers that are `alike` on every
device, or that it `draws`, and `of sizes` where it does with none if it is given no more than sizes; `weights` of a constructor: whether what it makes is `none`, `small` or `large`; `sizes`: of how many of its first
arguments the number of its weights is the product, the third to its `power`, or so many `power` of them where it has no third; `mode` of
a context: what it does to grad, and of a method of `hooks.CLASS`, which a framework calls: what grad is by then; `starts`: what runs
from then on, `cuda`, its `driver` alone, or other `processes`; `now`: the newer name of what is deprecated, see `Renamed`; `removed`: the version
that has it no more; `why`: a word
for people who read the table.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

LIBRARIES = ("torch", "networks", "python", "numpy", "frameworks")


@dataclass(frozen=True, slots=True)
class Renamed:
    """The newer name, the version of torch `since` which the old one is deprecated, and the one that `brought` the newer name, where that
    was earlier. `first` is the argument that it is given first; `order` are the old one's parameters, where the newer one has them in another."""

    name: str
    since: str
    brought: str = ""
    first: str = ""
    order: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """What one operation does. The columns are the table's."""

    graph: str = "keeps"
    gives: str = "tensor"
    view: bool = False
    reads: bool = False
    numbers: bool = False
    device: str = "same"
    size: str = "same"
    does: str = ""
    saves: str = ""
    fills: str = ""
    weights: str = ""
    sizes: int = 0
    power: int = 1
    mode: str = ""
    starts: str = ""
    now: Renamed | None = None
    removed: str = ""
    why: str = ""


class Table:
    """All rows, by what they are of and by name."""

    def __init__(self, rows: Mapping[str, Mapping[str, Row]]) -> None:
        self._rows = rows
        self._doing: dict[str, set[str]] = {}
        self.removed: dict[str, str] = {}  # by full name
        for kind, known in rows.items():
            for name, row in known.items():
                self._doing.setdefault(row.does, set()).add(name)
                if row.removed:
                    self.removed[f"{kind}.{name}"] = row.removed

    def method(self, of: str, name: str) -> Row | None:
        """The method of a kind of value; None where the table does not say."""
        rows = self._rows.get(of, {})
        return rows.get(name) or rows.get("*")

    def own(self, of: str, name: str) -> Row | None:
        """The same, without what stands for all others."""
        return self._rows.get(of, {}).get(name)

    def function(self, qualified: Any) -> Row | None:
        """A library's function or class by its full name, Python's own by their bare ones; None also of those that the table says are not
        seen, operators of others, and of what is no name."""
        module, _, name = str(qualified).rpartition(".")
        module = module or "builtins"
        while module:
            rows = self._rows.get(module)
            if rows is not None:
                # what is said of a package holds for what its modules define
                found = rows.get(name) or rows.get("*")
                return found if found is None or found.does != "unseen" else None
            module = module.rpartition(".")[0]
        return None

    def doing(self, does: Collection[str]) -> frozenset[str]:
        """The names of all whose event is one of these."""
        return frozenset().union(*(self._doing.get(one, ()) for one in does))

    def knows(self, of: str) -> Mapping[str, Row]:
        """Every row of one kind, by name."""
        return self._rows.get(of, {})


@cache
def table() -> Table:
    """The table of all libraries."""
    toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    found: dict[str, dict[str, Row]] = {}
    for library in LIBRARIES:
        text = (Path(__file__).parent / "data" / f"{library}.toml").read_text(encoding="utf-8")
        for entry in toml.loads(text)["row"]:
            _add(found, entry)
    return Table(found)


def _add(found: dict[str, dict[str, Row]], entry: dict[str, Any]) -> None:
    kinds, names = entry.pop("of").split(), entry.pop("names").split()
    now = entry.pop("now", None)
    row = Row(**entry, now=Renamed(**now) if now is not None else None)
    for kind in kinds:
        rows = found.setdefault(kind, {})
        for name in names:
            if name in rows:
                raise ValueError(f"{kind}.{name} has two rows")
            rows[name] = row
