"""What code holds a container to a size, and what only looks as if it did."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from gpulint.runtime.holding.limits import Container, limit_of

HEAD = """
class Store:
    def __init__(self, room):
        self.room, self.kept, self.keys = room, {kept}, []
"""
LISTS = {
    "popped": (
        "def put(self, x):\n self.kept.append(x)\n while len(self.kept) > self.room: self.kept.pop(0)",
        "self.room",
    ),
    "pushed below": (
        "def put(self, x):\n if len(self.kept) < self.room: heapq.heappush(self.kept, x)\n else: heapq.heapreplace(self.kept, x)",
        "self.room",
    ),
    "put in place": (
        "def put(self, x):\n if len(self.kept) >= 64: self.kept[0] = x\n else: self.kept.append(x)",
        "64",
    ),
    "left": ("def put(self, x):\n if len(self.kept) == 64: return\n self.kept.append(x)", "64"),
    "cut": ("def put(self, x):\n self.kept.append(x)\n self.kept = self.kept[-self.room:]", "self.room"),
    "deleted": ("def put(self, x):\n self.kept.append(x)\n self.kept.sort()\n del self.kept[9:]", "9"),
    "joined and cut": ("def put(self, x):\n self.kept = torch.cat([x, self.kept])[:self.room]", "self.room"),
    "flushed": (
        "def put(self, x):\n self.kept.append(x)\n if len(self.kept) >= 8: self.flush()\n"
        "def flush(self):\n save(self.kept)\n self.kept = []",
        "8",
    ),
    "by its own length": (
        "def __len__(self): return len(self.kept)\ndef put(self, x):\n if len(self) < self.room: self.kept.append(x)",
        "self.room",
    ),
    "by another name": (
        "def put(self, x):\n kept = self.kept\n kept.append(x)\n if len(kept) > 8: kept.clear()",
        "8",
    ),
    "by what is in it": (
        "def __len__(self): return sum(len(y) for y in self.kept)\ndef put(self, x):\n if len(self) < self.room: self.kept.append(x)",
        "self.room",
    ),
    "with what comes": (
        "def put(self, x):\n if len(self.kept) + len(x) <= self.room: self.kept.extend(x)",
        "self.room",
    ),
    "never called": (
        "def put(self, x): self.kept.append(x)\ndef trim(self):\n while len(self.kept) > self.room: self.kept.pop(0)",
        None,
    ),
    "only said": (
        "def put(self, x):\n self.kept.append(x)\n if len(self.kept) > 8: print(len(self.kept))",
        None,
    ),
    "another is popped": (
        "def put(self, x):\n self.kept.append(x)\n self.keys.append(x)\n if len(self.keys) > 8: self.keys.pop(0)",
        None,
    ),
    "another way in": (
        "def put(self, x):\n if len(self.kept) < 8: self.kept.append(x)\ndef add(self, x): self.kept.append(x)",
        None,
    ),
}
DICTS = {
    "evicted": (
        "def put(self, k, x):\n self.kept[k] = x\n if len(self.kept) > self.room: self.kept.popitem(last=False)",
        "self.room",
    ),
    "by what it takes": (
        "def put(self, k, x):\n self.kept[k] = x\n self.size += x.nbytes\n"
        " while self.size > self.most: self.size -= self.kept.popitem()[1].nbytes",
        "self.size > self.most",
    ),
    "emptied now and then": (
        "def put(self, k, x):\n self.kept[k] = x\n if self.step % 500 == 0: self.kept = {}",
        "self.step % 500 == 0",
    ),
    "replaced now and then": (
        "def put(self, k, x):\n self.kept[k] = x\n if self.step % 500 == 0: self.kept = dict(self.kept)",
        None,
    ),
    "keys come round": ("def put(self, k, x): self.kept[k % 32] = x", "32"),
    "wrong key": (
        "def put(self, k, x):\n self.kept[k] = x\n self.keys.append(str(k))\n"
        " while len(self.keys) > 8: self.kept.pop(self.keys.pop(0), None)",
        None,
    ),
}
CASES = [(body, False, most) for body, most in LISTS.values()]
CASES += [(body, True, most) for body, most in DICTS.values()]


@pytest.mark.parametrize(("body", "mapping", "most"), CASES, ids=[*LISTS, *DICTS])
def test_what_holds_it(body: str, mapping: bool, most: str | None, tmp_path: Path) -> None:
    source = HEAD.replace("{kept}", "{}" if mapping else "[]") + "".join(
        f"    {line}\n" for line in body.splitlines()
    )
    path = tmp_path / "store.py"
    path.write_text(source)
    found = limit_of(str(path), Container("kept", True, False, mapping, "Store"))
    assert (found and ast.unparse(found.most)) == most


def test_the_size_is_what_the_name_has(tmp_path: Path) -> None:
    path = tmp_path / "store.py"
    path.write_text("kept = []\ndef put(x):\n    kept.append(x)\n    if len(kept) > ROOM: kept.clear()\n")
    found = limit_of(str(path), Container("kept", False, False, False))
    assert found is not None
    assert (found.value({"ROOM": 7}.get), found.value({}.get), found.line) == (7, None, 4)
