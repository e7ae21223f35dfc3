"""Other texts for some source files, seen by this process as if they stood on the disk. Nothing on the disk is touched.

A folder holds an `index.json` with the texts by their files. Whoever loads such a file as code gets
the text: imports, `runpy`, `__mp_main__` in a spawned worker. Tracebacks, `inspect` and `linecache` show it, under the file's own
name. What opens the file as data (`open(__file__)`) reads what is on the disk.

The folder also holds a `sitecustomize.py`, so that every Python process with the folder on its PYTHONPATH installs the overlay at
its start: torchrun's ranks, workers that `multiprocessing` spawns, scripts that are started by a script. For that this module
imports the standard library alone, and nothing of gpulint: it is loaded by its path.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import io
import json
import linecache
import os
import sys
import threading
import traceback
from collections.abc import Mapping
from types import CodeType
from typing import Any

FOLDER = "GPULINT_OVERLAY"  # the environment variable that names the folder
INDEX = "index.json"
_MARK = "_gpulint_overlay"  # in `sys.modules`, once an overlay is installed

_SITE = '''\
"""Installs gpulint's overlay, then does what the environment's own sitecustomize does."""
import importlib.util, os
_spec = importlib.util.spec_from_file_location("_gpulint_overlay_loader", {module!r})
_overlay = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_overlay)
_overlay.enter(os.path.dirname(os.path.abspath(__file__)))
'''


def write(
    folder: str, texts: Mapping[str, bytes], environment: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Fill an empty folder with texts by the path of the file that each stands for. Returns the environment variables with which
    a Python process installs them at its start; a PYTHONPATH of `environment`, or else of this process, is kept."""
    # Each byte a letter
    index = {os.path.realpath(path): text.decode("latin-1") for path, text in texts.items()}
    with open(os.path.join(folder, INDEX), "w", encoding="utf-8") as out:
        json.dump(index, out)
    with open(os.path.join(folder, "sitecustomize.py"), "w", encoding="utf-8") as out:
        out.write(_SITE.format(module=os.path.abspath(__file__)))
    before = environment.get("PYTHONPATH", os.environ.get("PYTHONPATH"))
    paths = [folder, *filter(None, [before])]
    return {FOLDER: folder, "PYTHONPATH": os.pathsep.join(paths)}


def enter(folder: str) -> None:
    """What the folder's `sitecustomize` does: install the texts, leave `sys.path` as it would be without them, and run the
    `sitecustomize` that this one hides."""
    install(folder)
    ours = sys.modules.get("sitecustomize")
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != folder]
    sys.modules.pop("sitecustomize", None)
    try:
        importlib.import_module("sitecustomize")
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        if ours is not None:
            sys.modules.setdefault("sitecustomize", ours)


def install(folder: str) -> None:
    """Show this process the texts in the folder, once. Raises OSError or ValueError where it is no such folder."""
    if _MARK in sys.modules:
        return
    with open(os.path.join(folder, INDEX), encoding="utf-8") as index:
        texts = {path: text.encode("latin-1") for path, text in json.load(index).items()}
    overlay = Overlay(texts)
    sys.modules[_MARK] = overlay  # type: ignore[assignment]
    overlay.start()


def ensure() -> None:
    """Install what the environment names, where the interpreter has not read it at its start (`python -I`)."""
    folder = os.environ.get(FOLDER)
    if folder:
        install(folder)


class Overlay:
    """Texts by the real path of their file, and what shows them."""

    def __init__(self, texts: Mapping[str, bytes]) -> None:
        self._texts = dict(texts)

    def text_of(self, path: Any) -> bytes | None:
        """The text that stands for a file; None for any other."""
        return self._texts.get(os.path.realpath(path)) if isinstance(path, str) else None

    def start(self) -> None:
        """Put everything in place, for good: the process is there for one run."""
        self._show_to_loaders()
        self._show_to_linecache()
        if sys.version_info < (3, 13):  # before, the interpreter's own hooks read the line from the disk
            if sys.excepthook is sys.__excepthook__:
                sys.excepthook = traceback.print_exception
            if threading.excepthook is getattr(threading, "__excepthook__", None):
                threading.excepthook = _show_in_thread

    def _show_to_loaders(self) -> None:
        import _io

        plain = io.open_code

        def open_code(path: str) -> Any:
            text = self.text_of(path)
            return plain(path) if text is None else io.BytesIO(text)

        # `open_code` is what opens files whose content is to be run, in importlib and in runpy.
        io.open_code = _io.open_code = open_code
        loader = importlib.machinery.SourceFileLoader
        cached = loader.get_code

        def get_code(this: Any, fullname: str) -> CodeType | None:
            path = this.get_filename(fullname)
            text = self.text_of(path)
            if text is None:
                return cached(this, fullname)
            code: CodeType = this.source_to_code(text, path)  # past the bytecode cache, which has the file
            return code

        loader.get_code = get_code  # type: ignore[method-assign,assignment]

    def _show_to_linecache(self) -> None:
        plain = linecache.updatecache

        def updatecache(filename: str, module_globals: Any = None) -> list[str]:
            text = self.text_of(filename) if filename and not filename.startswith("<") else None
            if text is None:
                return plain(filename, module_globals)
            lines = importlib.util.decode_source(text).splitlines(keepends=True)
            if lines and not lines[-1].endswith("\n"):
                lines[-1] += "\n"
            # None: never checked against the disk
            linecache.cache[filename] = (len(text), None, lines, filename)
            return lines

        linecache.updatecache = updatecache


def _show_in_thread(given: Any) -> None:
    if given.exc_type is not SystemExit:
        name = given.thread.name if given.thread is not None else threading.get_ident()
        print(f"Exception in thread {name}:", file=sys.stderr)
        traceback.print_exception(given.exc_type, given.exc_value, given.exc_traceback)
