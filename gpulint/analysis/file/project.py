"""First-party modules around a file: found on disk, lowered when something of theirs is called, kept by content.

Only names that the program really calls are looked up, only below the folders that Python itself would search for this
file, and only so many modules for one file; what cannot be resolved is unknown, as before.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpulint.analysis.code import ir
from gpulint.analysis.code.command_line import agreeing, read_defaults
from gpulint.analysis.code.lower import lower
from gpulint.analysis.code.mentions import Mentions, mentions_in
from gpulint.analysis.code.missing import BUILDS, Asked
from gpulint.analysis.code.outside import FileCalls, OutsideCall, outside_calls
from gpulint.analysis.file.calls.effort import Effort
from gpulint.analysis.file.reaching import Reach, Reaching, may_import
from gpulint.analysis.file.sources import Sources
from gpulint.analysis.file.test_code import IMPORTS_RUNNER, by_place, is_test_file
from gpulint.analysis.project.scripts import PROJECT_FILES
from gpulint.analysis.values.values import Kind, Val
from gpulint.bounds import is_project_root
from gpulint.source.files import (
    MAX_SIZE,
    FileError,
    content_hash,
    every_file,
    for_parser,
    python_files,
    read_bytes,
    tree_hash,
)
from gpulint.source.importing import Importing, import_roots, is_foreign, parsed, project_root
from gpulint.source.program import UNKNOWN_TOP, Top

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

MAX_MODULES = 40  # looked into for one file
MAX_KEPT = 300
MAX_CALLERS = 8  # files asked what becomes of what a function returns
_SCANNED = 100  # words that are looked for one by one: an index of all of them takes about as long
_WORD = re.compile(rb"[A-Za-z_]\w*")


class Project:
    """The modules that files import from each other. One instance serves many files of one process.

    `buffers` are texts that stand for files on disk, as bytes by absolute path: what an editor has not yet saved.
    `top` stands for the project where nothing else marks one.
    """

    def __init__(self, buffers: Mapping[str, bytes] | None = None, top: Top = UNKNOWN_TOP) -> None:
        self._top = top
        self.parsed: dict[str, tuple[bytes, Any]] = {}  # files that the engine has read, with their bytes
        self.engine: Any = None  # of the files that were linted last, for the next
        self._buffers = {} if buffers is None else buffers
        self._importing = Importing(top, self._raw)
        self.effort = Effort()
        self.follow: Callable[[ir.Module, str, Project], FileAnalysis] | None = (
            None  # set by the file that is checked
        )
        self._asked: set[str] = set()  # the roots all of whose files an answer rests on
        self._modules: dict[str, tuple[str, FileAnalysis | None]] = {}
        self._used: dict[str, str] = {}
        self._looked_up = 0
        self._tree_hashes: dict[str, str] = {}
        self._trees: dict[str, list[tuple[str, bytes]]] = {}
        self._with_word: dict[str, list[tuple[str, bytes]]] = {}
        self._positions: dict[bytes, list[int]] = {}
        self._calls: dict[str, tuple[bytes, FileCalls]] = {}
        self._read: dict[str, tuple[bytes, Mentions]] = {}
        self._command_lines: dict[str, Mapping[str, object]] = {}
        self._tests: dict[str, tuple[bytes, bool]] = {}  # those of which what is in them decides
        self._bases_by_name: dict[str, set[str]] = {}
        self._top_folders: frozenset[str] = frozenset()
        self._defining: dict[tuple[str, str, bytes], tuple[str, ...]] = {}
        self._containing: dict[tuple[str, re.Pattern[bytes]], bool] = {}

    def begin(self) -> None:
        """A new file is looked at: forget which modules the last one used."""
        self._used = {}
        self._asked = set()
        self._looked_up = 0
        self._importing.begin()
        self.effort = Effort()

    def forget_files(self) -> None:
        """Files may have been written: list and read those that may call a function anew."""
        self.forget_engine()
        self._trees = {}
        self._tree_hashes = {}
        self._calls = {}
        self._read = {}
        self._defining = {}
        self._containing = {}
        self._command_lines = {}
        self._tests = {}
        import_roots.cache_clear()
        project_root.cache_clear()

    def forget_engine(self) -> None:
        """A file has been written, of which the engine may know what it was."""
        if self.engine is not None:
            self.engine.release()
            self.engine = None

    @property
    def dependencies(self) -> tuple[tuple[str, str], ...]:
        """The files that the current file's findings rest on, as (absolute path, hash of its bytes); for all files of a
        project `every_file(root)` and their hash."""
        trees = ((every_file(root), self._tree_hash(root)) for root in self._asked)
        return tuple(sorted((*self._used.items(), *trees)))

    def _tree_hash(self, root: str) -> str:
        self.neighbours(root)
        if root not in self._tree_hashes:
            self._tree_hashes = {root: tree_hash(self._trees[root])}
        return self._tree_hashes[root]

    def root(self, origin: str) -> str:
        """The root of a file's project, any file of which may hold what is asked for: also a new one."""
        root = project_root(origin, self._top)
        self._asked.add(root)
        return root

    def value(self, origin: str, qualified: str) -> Val | None:
        """The function or class that `qualified` denotes in the file `origin`, through re-exports; else None."""
        for analysis, rest in self._exporting(origin, qualified):
            value = analysis.top_level(".".join(rest)) if len(rest) <= 2 else None
            if value is not None:
                return value
        return None

    def bound(self, origin: str, qualified: str) -> tuple[FileAnalysis, ir.Expr] | None:
        """What the module that `qualified` names a constant of binds it to, once, and that module; else None."""
        for analysis, rest in self._exporting(origin, qualified):
            values = [
                statement.value
                for statement in ir.statements(analysis.module.body.body)
                if isinstance(statement, ir.Assign)
                and any(target.path == rest[0] for target in statement.targets)
            ]
            if values:
                only = values[0] if len(values) == len(rest) == 1 else None
                return (analysis, only) if only is not None else None
        return None

    def _exporting(self, origin: str, qualified: str) -> Iterator[tuple[FileAnalysis, list[str]]]:
        """The modules that a qualified name leads through, each with what is asked of it."""
        seen: set[tuple[str, str]] = set()
        while (origin, qualified) not in seen and len(seen) < 8:
            seen.add((origin, qualified))
            found = self._importing.locate(origin, qualified)
            analysis = self.analysis(found[0]) if found is not None and found[1] else None
            if found is None or analysis is None:
                return
            path, rest = found
            yield analysis, rest
            onward = analysis.module.imports.get(rest[0])
            if onward is None:
                onward = self._through_star(path, analysis, rest[0])
                if onward is None:
                    return
            origin, qualified = str(path), ".".join((onward, *rest[1:]))

    def _through_star(self, path: Path, analysis: FileAnalysis, name: str) -> str | None:
        for local, module in analysis.module.imports.items():
            if local.startswith("*"):
                qualified = f"{module}.{name}" if not module.endswith(".") else f"{module}{name}"
                found = self._importing.locate(str(path), qualified)
                inner = self.analysis(found[0]) if found is not None else None
                if inner is None:
                    continue
                assigned = inner.evidence[inner.module.body].assigned
                if name in inner.module.imports or name in assigned or inner.top_level(name) is not None:
                    return qualified
        return None

    def lacks(self, origin: str, qualified: str) -> str | None:
        """What an import of a file asks of a module of the project that does not have it, nor any other that may go by that
        module's name: in words. None where one may, or where a library may be meant."""
        found = self._importing.locate(origin, qualified)
        if found is None:
            return self._moved(origin, qualified)
        if not found[1] or str(found[0]) == os.path.abspath(origin):
            return None
        asked = Asked(*found, qualified, self.root(origin))
        # What a file puts on the search path comes before what it finds by itself.
        own = self._raw(Path(os.path.abspath(origin))) or b""
        if not asked.is_certain or b"sys.path" in own or (asked.of_package and self.contains(origin, BUILDS)):
            return None
        others = {Path(other) for other, _ in self.neighbours(asked.root) if asked.may_be(Path(other))}
        without = all(asked.is_missing(one, parsed(self._raw(one) or b"")) for one in {asked.path} | others)
        return asked.in_words() if without else None

    def _moved(self, origin: str, qualified: str) -> str | None:
        """The same of a module that the project has, but not in the package that the import names."""
        package, *rest = qualified.split(".")
        own = self._raw(Path(os.path.abspath(origin))) or b""
        if len(rest) < 2 or is_foreign(package) or b"sys.path" in own or not self.is_bounded(origin):
            return None
        named = re.compile(rf"(?i)\b{re.escape(package).replace('_', '[-_]')}\b")
        if any(named.search(text) for text in self.beside(origin, (*PROJECT_FILES, ".gitmodules"))):
            return None  # what is installed, or is itself called so
        folder = Sources(self, self.root(origin)).moved(origin, package)
        return f"there is no `{package}` that has `{rest[0]}`, which lies in {folder}" if folder else None

    def command_line(self, origin: str) -> Mapping[str, object]:
        """The defaults of all command lines of the project, tests left out, where they agree: by the names of their attributes."""
        root = self.root(origin)
        if root not in self._command_lines:
            adding = (
                raw
                for path, raw in self.neighbours(root)
                if b"add_argument" in raw and not self.is_test(path, raw, root)
            )
            trees = filter(None, map(parsed, islice(adding, MAX_MODULES)))
            self._command_lines = {root: agreeing(map(read_defaults, trees))}
        return self._command_lines[root]

    def beside(self, origin: str, names: tuple[str, ...]) -> list[str]:
        """The texts of files of these names in the folders from which a file's project imports."""
        found: list[str] = []
        for folder in import_roots(os.path.dirname(os.path.abspath(origin)), self._top):
            for name in names:
                raw = self._raw(folder / name)
                if raw is not None and len(raw) <= MAX_SIZE:
                    self._used[str(folder / name)] = content_hash(raw)
                    found.append(raw.decode("utf-8", "replace"))
        return found

    def is_test(self, path: str, raw: bytes, root: str) -> bool:
        """Whether a file of the project is one of its tests: folders above the project say nothing about it."""
        within = os.path.relpath(path, root)
        settled = by_place(within)
        if settled is not None:
            return settled
        if IMPORTS_RUNNER.search(raw) is not None:
            return True
        kept = self._tests.get(path)
        if kept is None or kept[0] != raw:
            try:
                found = is_test_file(lower(ast.parse(for_parser(raw))), within)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                found = True
            kept = self._tests[path] = (raw, found)
        return kept[1]

    def top_folders(self, origin: str) -> frozenset[str]:
        """The folders with Python files at the top of a file's project."""
        self.neighbours(self.root(origin))
        return self._top_folders

    def within(self, filename: str) -> str:
        """A file's path in its project."""
        return os.path.relpath(filename, project_root(filename, self._top))

    def is_bounded(self, filename: str) -> bool:
        """Whether it is known where a file's project ends: else what uses the file may lie outside."""
        return self._top.is_whole or is_project_root(project_root(filename, self._top))

    # --- callers -------------------------------------------------------------------------------------------------

    def reach(self, origin: str, functions: tuple[ir.Function, ...]) -> Reach:
        """How the project's other files call the functions: guarded where they do and only ever where grad is switched off. A
        private one that nobody calls does not count.

        The guard may stand further out, a few callers away. A call of the same name that cannot be the function's
        does not count: `self.name()` in an unrelated class, an override that hands on to its base, an unguarded call
        in a file without torch, a test.

        Any file of the project, also a new one, may hold a caller: the answer rests on all of them.
        """
        root = self.root(origin)
        return Reaching(self, root).of(origin, functions)

    def calls_of(self, origin: str, function: ir.Function) -> list[ir.Call]:
        """The calls of the project that may run the function, or make an object by it where it is a constructor; its own file's
        among them, its tests' not. As with guards, any file may hold one."""
        return list(Reaching(self, self.root(origin)).calls_of(os.path.abspath(origin), function))

    def follows_objects(self, origin: str, cls: str) -> bool:
        """Whether all objects of a class go by names that are seen: so all calls of what runs when they are called are."""
        return Reaching(self, self.root(origin)).follows_objects(os.path.abspath(origin), cls)

    def files_calling(self, origin: str, function: ir.Function) -> list[FileAnalysis] | None:
        """The project's other files that call something of the function's name, or make objects of its class where it is a
        constructor, tests left out; None where they are too many to look into. As with guards, any file may hold a caller."""
        makes = function.cls is not None and function.name == "__init__"
        name = function.cls.name if function.cls is not None and makes else function.name
        wanted = f"{name}(".encode()
        own = os.path.abspath(origin)
        root = self.root(origin)
        found: list[FileAnalysis] = []
        for path, raw in self.files_with(origin, name):
            if wanted not in raw or path == own or self.is_test(path, raw, root):
                continue
            if (function.cls is None or makes) and not may_import(raw, own, name):
                continue
            read = self.calls_in(path, raw)
            named = read.calls.get(name, ())
            calls = [call for call in named if not call.namesake]
            plain = (function.cls is None or makes) and bool(calls)
            if plain and all(self._is_beside(own, path, call, read) for call in calls):
                continue
            if all(call.on_self_of and not self.related(function, call.on_self_of) for call in calls):
                continue
            analysis = self.analysis(Path(path)) if len(found) < MAX_CALLERS else None
            if analysis is None:
                return None
            found.append(analysis)
        return found

    def _is_beside(self, own: str, path: str, call: OutsideCall, read: FileCalls) -> bool:
        """Whether a call by an imported name is of a function that a file other than `own` defines, as its text says: of a
        program beside it, which has a copy."""
        head, _, rest = (call.call.func.path or "").partition(".")
        full = f"{read.imports.get(head, '')}.{rest}".rstrip(".")
        found = self._importing.locate(path, full) if head in read.imports else None
        if found is None or os.path.abspath(found[0]) == own:
            return False
        defined = rb"^[ \t]*(?:def|class)[ \t]+%s\b" % re.escape(call.call.method.encode())
        return re.search(defined, self._raw(found[0]) or b"", re.MULTILINE) is not None

    def uses_as_value(self, origin: str, function: ir.Function) -> bool:
        """Whether another file does anything with the function but call it: hands it on, reads its signature. None can where the
        text is in no file."""
        if not os.path.isfile(origin):
            return False
        own, name = os.path.abspath(origin), function.name.encode()
        used = re.compile(
            rb"%s\b(?!\s*\()" % (rb"\.\s*" + name if function.cls is not None else rb"\b" + name)
        )
        return any(
            path != own
            and used.search(raw) is not None
            and (function.cls is not None or may_import(raw, own, function.name))
            and self._reads(path, raw, function)
            for path, raw in self.files_with(origin, function.name)
        )

    def _reads(self, path: str, raw: bytes, function: ir.Function) -> bool:
        read = self.mentions(path, raw)
        as_name = function.cls is None and function.name in read.names
        return read.unreadable or as_name or function.name in read.attributes

    def mentions(self, path: str, raw: bytes) -> Mentions:
        """What a file does with names of others. Kept for the next question."""
        kept = self._read.get(path)
        if kept is None or kept[0] != raw:
            try:
                found = mentions_in(ast.parse(for_parser(raw)))
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                found = Mentions(unreadable=True)
            kept = self._read[path] = (raw, found)
        return kept[1]

    def speaks_of(self, origin: str, function: ir.Function) -> bool:
        """Whether another file may run the function: it reads, imports or spells its name, or calls by it what may be this one
        for all that can be told. Documents and settings may name it as well, which only a text of it in quotes would show."""
        root, own, name = self.root(origin), os.path.abspath(origin), function.name
        spelled = function.cls is not None or self.contains(origin, LOOKS_UP)
        word = re.compile(rb"\b%s\b" % re.escape(name.encode()))
        reaching = Reaching(self, root)
        for path, raw in self.neighbours(root):
            if path == own or name.encode() not in raw or word.search(raw) is None:
                continue
            if function.cls is None and not may_import(raw, own, name):
                continue
            read = self.mentions(path, raw)
            brought = function.cls is None and name in read.imported
            if brought or (spelled and name in read.texts) or self._reads(path, raw, function):
                return True
            calls = self.calls_in(path, raw)
            if any(
                function.cls is not None or not self._is_elsewhere(own, path, call, calls)
                for call in reaching.meant_in(own, function, path, raw)
            ):
                return True
        return False

    def callers_beside(self, origin: str, function: ir.Function) -> frozenset[str] | None:
        """The functions of its own file, by their qualified names, that call what may be the function for all that can be told;
        None where the file does more with its name, or cannot be asked."""
        root, own = self.root(origin), os.path.abspath(origin)
        raw = next((raw for path, raw in self.neighbours(root) if path == own), None)
        said = self.mentions(own, raw) if raw is not None else Mentions(unreadable=True)
        if raw is None or said.unreadable or function.name in said.names | said.attributes | said.texts:
            return None
        meant = Reaching(self, root).meant_in(own, function, own, raw)
        return frozenset(call.caller.qualname for call in meant)

    def _is_elsewhere(self, own: str, path: str, call: OutsideCall, calls: FileCalls) -> bool:
        """Whether a call by an imported name is seen to run a function of another file."""
        head, _, rest = (call.call.func.path or "").partition(".")
        if head not in calls.imports:
            return False
        found = self.value(path, f"{calls.imports[head]}.{rest}".rstrip("."))
        home = found.ref.home.filename if found is not None and found.kind is Kind.FUNCTION else own
        return os.path.abspath(home) != own

    def contains(self, origin: str, pattern: re.Pattern[bytes]) -> bool:
        """Whether any file of the project, tests left out, has a text of this form. As with callers, any file may."""
        root = self.root(origin)
        neighbours = self.neighbours(root)
        key = (root, pattern)
        if key not in self._containing or self._buffers:  # what is typed changes without a word
            self._containing[key] = any(
                pattern.search(raw) is not None and not self.is_test(path, raw, root)
                for path, raw in neighbours
            )
        return self._containing[key]

    def files_defining(self, origin: str, name: str, also: bytes) -> list[FileAnalysis]:
        """The project's other files, tests left out, that define a function of the name and contain `also`. As with
        callers, any file may."""
        root = self.root(origin)
        neighbours = self.neighbours(root)
        key = (root, name, also)
        if key not in self._defining:
            wanted = f"def {name}(".encode()
            found = (
                path
                for path, raw in neighbours
                if wanted in raw and also in raw and not self.is_test(path, raw, root)
            )
            self._defining[key] = tuple(islice(found, MAX_CALLERS))
        analyses = (self.analysis(Path(path)) for path in self._defining[key])
        return [analysis for analysis in analyses if analysis is not None]

    def methods_named(self, origin: str, name: str) -> list[ir.Function]:
        """The methods of that name of all classes of the project, tests left out: to compare their text, for none of them is
        followed. As with callers, any file may have one."""
        root, wanted = self.root(origin), f"def {name}(".encode()
        return [
            method
            for path, raw in self.neighbours(root)
            if wanted in raw and not self.is_test(path, raw, root)
            for method in self.calls_in(path, raw).methods.get(name, ())
        ]

    def related(self, function: ir.Function, name: str) -> bool:
        """Whether the function's class and the class of that name stand in one line of inheritance."""
        if function.cls is None:
            return False
        own = function.cls.name
        return name in self.bases(own) or own in self.bases(name)

    def bases(self, name: str) -> frozenset[str]:
        """The class itself and its bases in the project, all by their last names."""
        found: set[str] = set()
        queue = [name]
        while queue:
            current = queue.pop()
            if current not in found:
                found.add(current)
                queue += self._bases_by_name.get(current, ())
        return frozenset(found)

    def derived(self, name: str) -> set[str]:
        """The classes of the project below the one of that name, all by their last names."""
        return {one for one in self._bases_by_name if one != name and name in self.bases(one)}

    def calls_in(self, path: str, raw: bytes) -> FileCalls:
        """What a file calls, by last name. Kept for the functions of other files."""
        kept = self._calls.get(path)
        if kept is None or kept[0] != raw:
            try:
                found = outside_calls(lower(ast.parse(for_parser(raw))), _GUARDS)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                found = FileCalls() if kept is None else kept[1]  # while it is typed, what it was
            kept = self._calls[path] = (raw, found)
        return kept[1]

    def neighbours(self, root: str) -> list[tuple[str, bytes]]:
        """The Python files of the project below a folder, as far as the limits allow."""
        if root not in self._trees:
            self._tree_hashes = {}
            self._with_word, self._positions = {}, {}
            self._trees = {root: list(python_files(root))}
            self._calls = {}
            self._read = {}
            self._defining = {}
            self._containing = {}
            self._command_lines = {}
            self._bases_by_name = _bases_by_name(self._trees[root])
            self._top_folders = _top_folders(root, self._trees[root])
        if not self._buffers:
            return self._trees[root]
        return [(path, self._buffers.get(path, raw)) for path, raw in self._trees[root]]

    # --- for the engine that is asked: `gpulint.analysis.project.program.Sources` ----------------------------------------

    def locate(self, origin: str, qualified: str) -> tuple[Path, list[str]] | None:
        """The module file that a dotted name starts with, and the rest of the name."""
        return self._importing.locate(origin, qualified)

    def read(self, path: str) -> bytes | None:
        """The bytes of a file of the project, whose findings then depend on it; None where it is too long, or cannot be read."""
        raw = self._raw(Path(path))
        if raw is None or len(raw) > MAX_SIZE:
            return None
        self._used[path] = content_hash(raw)
        return raw

    def root_of(self, filename: str) -> str:
        """The folder of a file's project."""
        return project_root(filename, self._top)

    def holds(self, filename: str, text: str) -> bool:
        """Whether this is the text that the file has for all who ask, and keeps."""
        raw = None if self._buffers else self._raw(Path(filename))
        return raw is not None and for_parser(raw).decode("utf-8-sig", "replace") == text

    def rest_on(self, files: dict[str, str], roots: set[str]) -> None:
        """The current file's findings rest on these files and all of these projects as well, and those to come on what this one does:
        what a project's hash covers need not be named again."""
        roots.update(self._asked)
        self._asked.update(roots)
        covered = {path for root in roots for path, _ in self._trees.get(root, ())}
        files.update(one for one in self._used.items() if one[0] not in covered)
        self._used.update(files)

    def files_with(self, origin: str, word: str) -> list[tuple[str, bytes]]:
        """The Python files of a file's project whose text has a word: on all of them its findings then depend."""
        if not os.path.isfile(origin):
            return []
        wanted = word.encode()
        files = self.neighbours(self.root(origin))
        if self._buffers:  # what is typed changes without a word
            return [(path, raw) for path, raw in files if wanted in raw]
        if word not in self._with_word:
            one_by_one = len(self._with_word) < _SCANNED or _WORD.fullmatch(wanted) is None
            self._with_word[word] = (
                [(path, raw) for path, raw in files if wanted in raw]
                if one_by_one
                else [files[position] for position in self._index(files).get(wanted, ())]
            )
        return self._with_word[word]

    def _index(self, files: list[tuple[str, bytes]]) -> dict[bytes, list[int]]:
        """The positions of the files that have a word, by word."""
        if not self._positions:
            for position, (_, raw) in enumerate(files):
                for word in set(_WORD.findall(raw)):
                    self._positions.setdefault(word, []).append(position)
        return self._positions

    def is_test_file(self, origin: str, path: str, raw: bytes) -> bool:
        """Whether a file of the project is one of its tests."""
        return self.is_test(path, raw, self.root(origin))

    # --- modules -------------------------------------------------------------------------------------------------

    def analysis(self, path: Path) -> FileAnalysis | None:
        """The analysis of a module; None where it cannot be read, does not parse, or is beyond the limits."""
        key = str(path)
        kept = self._modules.get(key)
        if key in self._used and kept is not None:
            return kept[1]
        if self._looked_up >= MAX_MODULES:
            return None
        self._looked_up += 1
        raw = self._raw(path)
        if raw is None:
            return None
        digest = content_hash(raw)
        self._used[key] = digest
        if kept is not None and kept[0] == digest:
            return kept[1]
        analysis = self._lowered(key, raw)
        if len(self._modules) >= MAX_KEPT:
            self._modules.pop(next(iter(self._modules)))
        self._modules[key] = (digest, analysis)
        return analysis

    def _raw(self, path: Path) -> bytes | None:
        buffered = self._buffers.get(os.path.abspath(path)) if self._buffers else None
        if buffered is not None:
            return buffered
        try:
            return read_bytes(str(path))
        except FileError:
            return None

    def _lowered(self, path: str, raw: bytes) -> FileAnalysis | None:
        if len(raw) > MAX_SIZE or self.follow is None:
            return None
        try:
            return self.follow(lower(ast.parse(for_parser(raw))), path, self)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


_GUARDS = frozenset({"no_grad", "inference_mode"})
# By which a program gets at a function of a module whose name it has as a text.
LOOKS_UP = re.compile(
    rb"\bgetattr\([^,()]*(?:\([^()]*\)[^,()]*)?,\s*(?![\"'])|\b(?:globals|locals|vars)\(\)|(?<![.\w])(?:eval|exec)\(|"
    rb"\b(?:__dict__|__import__|import_module|hydra|attrgetter|fire|_target_|instantiate(?=\()|pydoc)\b"
)
_CLASS = re.compile(rb"^[ \t]*class\s+(\w+)\s*\(([^)]*)\)", re.MULTILINE)
_BASE = re.compile(rb"(\w+)\s*(?:\[[^\]]*\]\s*)?(?:,|$)")


def _top_folders(root: str, files: list[tuple[str, bytes]]) -> frozenset[str]:
    within = (os.path.relpath(path, root) for path, _ in files)
    return frozenset(path.partition(os.sep)[0] for path in within if os.sep in path)


def _bases_by_name(files: list[tuple[str, bytes]]) -> dict[str, set[str]]:
    """The bases of every class, by last names; classes of one name are taken together."""
    found: dict[str, set[str]] = {}
    for _, raw in files:
        for name, bases in _CLASS.findall(raw):
            known = found.setdefault(name.decode(), set())
            known.update(base.decode() for base in _BASE.findall(bases.strip()))
    return found
