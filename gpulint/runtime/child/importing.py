"""Calls back when the script has imported torch, and not before: importing it earlier would change what the
script sees, since environment variables that it sets first would come too late. Seeds the generators of random numbers before the
script can draw from them."""

from __future__ import annotations

import contextlib
import importlib.abc
import random
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from gpulint.runtime.probes import hooks


class ImportHook(importlib.abc.MetaPathFinder):
    """Waits for one top-level module."""

    def __init__(self, name: str, then: Callable[[ModuleType], None]) -> None:
        self._name = name
        self._then = then

    def install(self) -> None:
        """Go to the front of `sys.meta_path`."""
        sys.meta_path.insert(0, self)

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if fullname != self._name or path is not None:
            return None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(fullname, path, target) if find else None
            if spec is not None:
                if spec.loader is not None:
                    self._undo = hooks.around(spec.loader, "exec_module", after=self._done)
                return spec
        return None

    def _done(self, _: Any, module: ModuleType) -> None:
        """The loader has run a module; one loader may be there for several."""
        if module.__name__ == self._name and self in sys.meta_path:
            sys.meta_path.remove(self)
            self._undo()
            self._then(module)


def seed(number: int) -> None:
    """Seed python's generator now, and numpy's as soon as it is imported. The script may seed them anew."""

    def imported(numpy: ModuleType) -> None:
        with contextlib.suppress(Exception):  # a numpy that cannot be seeded is seen where two runs differ
            numpy.random.seed(number)

    random.seed(number)
    if "numpy" in sys.modules:
        imported(sys.modules["numpy"])
    else:
        ImportHook("numpy", imported).install()
