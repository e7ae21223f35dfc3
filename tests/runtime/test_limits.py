"""What code holds a container to a size, and what only looks as if it did; and which statements store into a variable."""

import ast
import textwrap
from pathlib import Path

import pytest

from gpulint.runtime.holding.limits import Container, limit_of
from gpulint.runtime.holding.naming import storing_lines

HEAD = """
class Store:
    def __init__(self, room):
        self.room, self.kept, self.keys = room, {kept}, []
"""
DEF = "def put(self, x):\n"
PUT = DEF + " self.kept.append(x)\n"
KEYED = "def put(self, k, x):\n self.kept[k] = x\n"
LISTS = {
    "popped": (PUT + " while len(self.kept) > self.room: self.kept.pop(0)", "self.room"),
    "pushed below": (
        DEF
        + " if len(self.kept) < self.room: heapq.heappush(self.kept, x)\n else: heapq.heapreplace(self.kept, x)",
        "self.room",
    ),
    "put in place": (DEF + " if len(self.kept) >= 64: self.kept[0] = x\n else: self.kept.append(x)", "64"),
    "left": (DEF + " if len(self.kept) == 64: return\n self.kept.append(x)", "64"),
    "cut": (PUT + " self.kept = self.kept[-self.room:]", "self.room"),
    "deleted": (PUT + " self.kept.sort()\n del self.kept[9:]", "9"),
    "joined and cut": (DEF + " self.kept = torch.cat([x, self.kept])[:self.room]", "self.room"),
    "flushed": (
        PUT + " if len(self.kept) >= 8: self.flush()\ndef flush(self):\n save(self.kept)\n self.kept = []",
        "8",
    ),
    "by its own length": (
        "def __len__(self): return len(self.kept)\ndef put(self, x):\n if len(self) < self.room: self.kept.append(x)",
        "self.room",
    ),
    "by another name": (DEF + " kept = self.kept\n kept.append(x)\n if len(kept) > 8: kept.clear()", "8"),
    "by what is in it": (
        "def __len__(self): return sum(len(y) for y in self.kept)\ndef put(self, x):\n if len(self) < self.room: self.kept.append(x)",
        "self.room",
    ),
    "with what comes": (DEF + " if len(self.kept) + len(x) <= self.room: self.kept.extend(x)", "self.room"),
    "never called": (
        "def put(self, x): self.kept.append(x)\ndef trim(self):\n while len(self.kept) > self.room: self.kept.pop(0)",
        None,
    ),
    "only said": (PUT + " if len(self.kept) > 8: print(len(self.kept))", None),
    "another is popped": (PUT + " self.keys.append(x)\n if len(self.keys) > 8: self.keys.pop(0)", None),
    "another way in": (
        DEF + " if len(self.kept) < 8: self.kept.append(x)\ndef add(self, x): self.kept.append(x)",
        None,
    ),
}
DICTS = {
    "evicted": (KEYED + " if len(self.kept) > self.room: self.kept.popitem(last=False)", "self.room"),
    "by what it takes": (
        KEYED
        + " self.size += x.nbytes\n while self.size > self.most: self.size -= self.kept.popitem()[1].nbytes",
        "self.size > self.most",
    ),
    "emptied now and then": (KEYED + " if self.step % 500 == 0: self.kept = {}", "self.step % 500 == 0"),
    "replaced now and then": (KEYED + " if self.step % 500 == 0: self.kept = dict(self.kept)", None),
    "keys come round": ("def put(self, k, x): self.kept[k % 32] = x", "32"),
    "wrong key": (
        KEYED + " self.keys.append(str(k))\n while len(self.keys) > 8: self.kept.pop(self.keys.pop(0), None)",
        None,
    ),
}
CASES = [(body, False, most) for body, most in LISTS.values()]
CASES += [(body, True, most) for body, most in DICTS.values()]


@pytest.mark.parametrize(("body", "mapping", "most"), CASES, ids=[*LISTS, *DICTS])
def test_what_holds_it(body: str, mapping: bool, most: str | None, tmp_path: Path) -> None:
    path = tmp_path / "store.py"
    path.write_text(HEAD.replace("{kept}", "{}" if mapping else "[]") + textwrap.indent(body, "    "))
    found = limit_of(str(path), Container("kept", True, False, mapping, "Store"))
    assert (found and ast.unparse(found.most)) == most


def test_the_size_is_what_the_name_has(tmp_path: Path) -> None:
    path = tmp_path / "store.py"
    path.write_text("kept = []\ndef put(x):\n    kept.append(x)\n    if len(kept) > ROOM: kept.clear()\n")
    found = limit_of(str(path), Container("kept", False, False, False))
    assert (found.value({"ROOM": 7}.get), found.value({}.get), found.line) == (7, None, 4)


# -- which statements are named as storing into a variable -----------------------------------------------------

SOURCE = """\
CACHE = {}


class Trainer:
    def __init__(self):
        self.history = []
        self.loss = None

    def step(self, loss):
        self.loss = loss
        self.history.append(loss)


def train(model, batches):
    losses, outs = [], None
    state = None
    for batch in batches:
        state = model(batch, state)
        out = model(batch)
        losses += [out]
        CACHE[batch] = out
        logs["x"].append(out)
        outs = out
    (first, *rest) = losses
    return (total := sum(losses))


def other():
    losses = 5
"""


@pytest.mark.parametrize(
    ("name", "attribute", "first_line", "lines"),
    [
        ("losses", False, 14, (20, 15)),
        ("losses", False, 28, (29,)),
        ("losses", False, 0, (20, 15, 29)),
        ("state", False, 14, (18, 16)),
        ("outs", False, 14, (23, 15)),
        ("CACHE", False, 0, (21, 1)),
        ("logs", False, 14, (22,)),
        ("history", True, 0, (11, 6)),
        ("loss", True, 0, (7, 10)),
        ("rest", False, 14, (24,)),
        ("total", False, 14, (25,)),
        ("missing", False, 0, ()),
    ],
)
def test_storing_lines(tmp_path, name, attribute, first_line, lines):
    path = tmp_path / "train.py"
    path.write_text(SOURCE)
    assert storing_lines(str(path), name, attribute, first_line) == lines


def test_a_file_that_cannot_be_read_names_nothing(tmp_path):
    assert storing_lines(str(tmp_path / "none.py"), "x", False) == ()
    broken = tmp_path / "broken.py"
    broken.write_text("def (")
    assert storing_lines(str(broken), "x", False) == ()
