"""Notebooks in the language server: cells are checked together, and their findings and fixes stand in the cells."""

import json
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from server_support import Editor, able, applied, at, editing, utf16
from support import gpulint, notebook

SETUP = "%matplotlib inline\nimport torch\nfrom torch import nn\n\nmodel = torch.hub.load('pytorch/vision', 'resnet50')\n"
TRAIN = """\
name = "😀"
total = 0.0
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    total += loss"""
LATER = "print(torch.cuda.memory_cached())\n"
CELLS = (SETUP, TRAIN, LATER)


class BookEditor:
    """A notebook in an editor. `texts` are its cells in order."""

    def __init__(self, editor: Editor, name: str, texts: tuple[str, ...]) -> None:
        self.editor = editor
        self.uri = editor.uri(name)
        self.texts = list(texts)
        self.uris = [self.cell_uri(number) for number in range(len(texts))]
        self.versions = dict.fromkeys(self.uris, 1)
        self.version = 1
        cells = [self.cell(uri) for uri in self.uris]
        items = [self.item(uri, text) for uri, text in zip(self.uris, self.texts, strict=True)]
        notebook = types.NotebookDocument(self.uri, "jupyter-notebook", 1, cells)
        editor.notebook_document_did_open(types.DidOpenNotebookDocumentParams(notebook, items))

    def cell_uri(self, number: int) -> str:
        return self.uri.replace("file:", "vscode-notebook-cell:") + f"#W{number}sZmlsZQ%3D%3D"

    def cell(self, uri: str) -> types.NotebookCell:
        return types.NotebookCell(types.NotebookCellKind.Code, uri)

    def item(self, uri: str, text: str) -> types.TextDocumentItem:
        return types.TextDocumentItem(uri, "python", 1, text)

    def change(self, **cells: Any) -> None:
        self.version += 1
        identifier = types.VersionedNotebookDocumentIdentifier(self.version, self.uri)
        event = types.NotebookDocumentChangeEvent(cells=types.NotebookDocumentCellChanges(**cells))
        self.editor.notebook_document_did_change(types.DidChangeNotebookDocumentParams(identifier, event))

    def write(self, number: int, where: types.Range, new: str) -> None:
        """Type into a cell."""
        uri = self.uris[number]
        self.versions[uri] += 1
        self.texts[number] = applied(self.texts[number], [types.TextEdit(where, new)], utf16)
        self.change(
            text_content=[
                types.NotebookDocumentCellContentChanges(
                    types.VersionedTextDocumentIdentifier(self.versions[uri], uri),
                    [types.TextDocumentContentChangePartial(where, new)],
                )
            ]
        )

    def splice(self, start: int, delete: int, *texts: str) -> None:
        """Take cells out and put new ones in."""
        gone = self.uris[start : start + delete]
        new = [self.cell_uri(100 * self.version + number) for number in range(len(texts))]
        self.uris[start : start + delete] = new
        self.texts[start : start + delete] = texts
        self.versions.update(dict.fromkeys(new, 1))
        self.change(
            structure=types.NotebookDocumentCellChangeStructure(
                types.NotebookCellArrayChange(start, delete, [self.cell(uri) for uri in new]),
                [self.item(uri, text) for uri, text in zip(new, texts, strict=True)],
                [types.TextDocumentIdentifier(uri) for uri in gone],
            )
        )

    async def found(self, after: int = 0) -> dict[int, list[tuple[str, int]]]:
        """Codes with rows, by cell, as published for the cells' newest versions."""

        def newest() -> dict[str, types.PublishDiagnosticsParams]:
            return {
                item.uri: item
                for item in self.editor.published[after:]
                if item.version == self.versions.get(item.uri)
            }

        await self.editor.until(lambda: set(newest()) >= set(self.uris))
        return {
            number: [(str(item.code), item.range.start.line + 1) for item in newest()[uri].diagnostics]
            for number, uri in enumerate(self.uris)
            if newest()[uri].diagnostics
        }

    def after(self, action: types.CodeAction) -> list[str]:
        """The cells' texts with the action applied."""
        texts = dict(zip(self.uris, self.texts, strict=True))
        for change in action.edit.document_changes or ():
            uri = change.text_document.uri
            assert change.text_document.version == self.versions[uri]
            texts[uri] = applied(texts[uri], change.edits, utf16)
        return [texts[uri] for uri in self.uris]


@pytest.mark.parametrize("pull", [False, True])
async def test_cells_are_checked_together(tmp_path: Path, pull: bool) -> None:
    async with editing(tmp_path, able(pull=pull)) as editor:
        assert editor.greeting.capabilities.notebook_document_sync is not None
        book = BookEditor(editor, "train.ipynb", CELLS)
        assert await book.found() == {1: [("GPU101", 8)], 2: [("GPU603", 1)]}
        if pull:  # published, so not told twice
            assert await editor.pull(book.uris[1]) == []
        told = await editor.hover_at(book.uris[1], 7, 6)
        assert told.startswith("**GPU101** `total` adds up `loss`")
        assert await editor.hover_at(book.uris[0], 1, 3) == ""
        told = await editor.hover_at(book.uris[1], 4, 6)
        assert told.startswith("**GPU201** eval-with-grad: `model` not told\n\n- *backward* no: ")

        book.write(1, at(7, 17), ".item()")
        assert await book.found() == {2: [("GPU603", 1)]}
        book.write(1, at(7, 17, (7, 24)), "")
        sent = len(editor.published)
        book.splice(1, 0, "# a new cell\n", "pass")
        assert await book.found(sent) == {3: [("GPU101", 8)], 4: [("GPU603", 1)]}
        sent = len(editor.published)
        removed = book.uris[3]
        book.splice(3, 1)
        assert await book.found(sent) == {3: [("GPU603", 1)]}
        assert any(item.uri == removed and not item.diagnostics for item in editor.published[sent:])

        sent = len(editor.published)
        identifier = types.NotebookDocumentIdentifier(book.uri)
        editor.notebook_document_did_close(
            types.DidCloseNotebookDocumentParams(
                identifier, [types.TextDocumentIdentifier(uri) for uri in book.uris]
            )
        )

        def is_cleared() -> bool:
            last = {item.uri: item.diagnostics for item in editor.published[sent:]}
            return {*book.uris} <= last.keys() and not any(last.values())

        await editor.until(is_cleared)


async def test_a_cell_that_does_not_parse_is_one_diagnostic(tmp_path: Path) -> None:
    async with editing(tmp_path) as editor:
        book = BookEditor(editor, "train.ipynb", (SETUP, "x = (", TRAIN))
        assert await book.found() == {1: [("GPU000", 1)], 2: [("GPU101", 8)]}


async def test_fixes_in_cells_are_those_of_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "train.ipynb").write_text(notebook(*CELLS))
    gpulint("--fix", "--no-cache", "train.ipynb", cwd=tmp_path)
    fixed = [cell["source"] for cell in json.loads((tmp_path / "train.ipynb").read_text())["cells"]]
    fixed = [source if isinstance(source, str) else "".join(source) for source in fixed]
    assert fixed != list(CELLS)

    async with editing(tmp_path, able(resolve=True)) as editor:
        book = BookEditor(editor, "train.ipynb", CELLS)
        assert set(await book.found()) == {1, 2}
        for uri in book.uris:
            (action,) = await editor.actions(uri, at(0), ["notebook.source.fixAll"])
            assert action.kind == "notebook.source.fixAll.gpulint"
            action = await editor.code_action_resolve_async(action)
            assert book.after(action) == fixed
            assert await editor.actions(uri, at(0), ["source.fixAll"]) == []
        (quick, *_) = await editor.actions(book.uris[1], at(7, 4), ["quickfix"])
        assert book.after(quick) == [SETUP, fixed[1], LATER]
        offered = await editor.actions(book.uris[1], at(7, 4), ["quickfix"])
        (silence,) = [action for action in offered if "suppress" in action.title]
        assert book.after(silence) == [SETUP, TRAIN + "  # gpulint: ignore[GPU101]", LATER]


async def test_exclusions_hold_for_notebooks(tmp_path: Path) -> None:
    (tmp_path / "gpulint.toml").write_text('extend-exclude = ["old.ipynb"]\n')

    async with editing(tmp_path) as editor:
        assert await BookEditor(editor, "old.ipynb", CELLS).found() == {}
        assert await BookEditor(editor, "new.ipynb", CELLS).found() != {}
