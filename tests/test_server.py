"""The language server, driven over its standard streams by an LSP client: its life, diagnostics, hover, settings."""

import asyncio
import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from server_support import INITIALIZE, SERVER, able, at, editing, message, talk, utf8, utf16
from support import CLEAN, HELD, HELD_ROW, environment, gpulint, misbehaving

from gpulint import __version__

KEEPER = "def keep(store, value):\n    store.append(value)\n"
USES_KEEPER = (
    HELD.replace("import nn\n", "import nn\nfrom keeper import keep\n")
    .replace("total = 0.0", "losses = []")
    .replace("total += loss", "keep(losses, loss)")
    .replace("return total", "return losses")
)


def codes(items: list[types.Diagnostic]) -> list[tuple[str, int]]:
    """Codes with rows, from 1."""
    return [(str(item.code), item.range.start.line + 1) for item in items]


async def test_life_from_initialize_to_exit(tmp_path: Path) -> None:
    async with editing(tmp_path) as editor:
        abilities = editor.greeting.capabilities
        assert editor.greeting.server_info == types.ServerInfo("gpulint", __version__)
        assert abilities.position_encoding == types.PositionEncodingKind.Utf16
        assert abilities.text_document_sync.change == types.TextDocumentSyncKind.Incremental
        assert abilities.text_document_sync.save
        assert abilities.hover_provider
        assert "source.fixAll.gpulint" in (abilities.code_action_provider.code_action_kinds or ())
        await editor.shutdown_async(None)
        with pytest.raises(JsonRpcException, match="shut down"):
            await editor.pull(editor.uri("train.py"))
        editor.exit(None)
        await editor.until(lambda: editor.exit_code is not None)
    assert editor.exit_code == 0
    assert (editor.shown, editor.logged) == ([], [])


async def test_open_change_close(tmp_path: Path) -> None:
    """Whole and incremental changes; the last version of several in a row; nothing after closing."""
    async with editing(tmp_path) as editor:
        uri = editor.open("train.py", HELD)
        (found,) = await editor.diagnostics(uri)
        kind = ("GPU101", "gpulint", types.DiagnosticSeverity.Information)
        assert (found.code, found.source, found.severity) == kind
        assert found.range == at(HELD_ROW - 1, 8, (HELD_ROW - 1, 21))
        assert found.code_description.href.endswith("GPU101")

        fixed = HELD.replace("+= loss\n", "+= loss.item()\n")
        editor.change(uri, (at(HELD_ROW - 1, 21), ".item()"), text=fixed)
        assert await editor.diagnostics(uri) == []

        # Two changes in one message, the second placed by the text after the first.
        moved = "# one\n" + HELD
        editor.change(uri, (at(HELD_ROW - 1, 21, (HELD_ROW - 1, 28)), ""), (at(0), "# one\n"), text=moved)
        assert codes(await editor.diagnostics(uri)) == [("GPU101", HELD_ROW + 1)]

        before = len(editor.published)
        for number in range(20):
            editor.rewrite(uri, "# more\n" * number + HELD)
        assert codes(await editor.diagnostics(uri)) == [("GPU101", HELD_ROW + 19)]
        assert len(editor.published) - before < 5, "changes in a row are checked together"

        editor.close_document(uri)
        await editor.until(lambda: editor.published[-1].version is None)
        assert (editor.published[-1].uri, editor.published[-1].diagnostics) == (uri, ())


@pytest.mark.parametrize(("encoding", "units"), [("utf-16", utf16), ("utf-8", utf8), ("utf-32", len)])
async def test_places_in_the_units_agreed_on(tmp_path: Path, encoding: str, units: Any) -> None:
    text = HELD.replace("    ", "\t").replace("total +=", 'name = "😀é\t\f\u2028"; total +=')
    line = next(line for line in text.split("\n") if "+= loss" in line)
    start, end = units(line[: line.index("total")]), units(line)

    async with editing(tmp_path, able(encodings=[encoding])) as editor:
        assert editor.greeting.capabilities.position_encoding == encoding
        uri = editor.open("train.py", text)
        (found,) = await editor.diagnostics(uri)
        assert found.range == at(HELD_ROW - 1, start, (HELD_ROW - 1, end))
        (action,) = [
            item for item in await editor.actions(uri, found.range, ["quickfix"]) if item.is_preferred
        ]
        assert editor.after(action, uri, units) == text.replace("+= loss\n", "+= loss.detach()\n")
        # A change behind the emoji, the form feed and the line separator.
        changed = text.replace("+= loss\n", "+= loss.item()\n")
        editor.change(uri, (at(HELD_ROW - 1, end), ".item()"), text=changed)
        assert await editor.diagnostics(uri) == []
        assert "held-graph" not in await editor.hover_at(uri, HELD_ROW - 1, end)


async def test_clients_that_ask_for_diagnostics_are_sent_none(tmp_path: Path) -> None:
    async with editing(tmp_path, able(pull=True)) as editor:
        uri = editor.open("train.py", HELD)
        assert codes(await editor.pull(uri)) == [("GPU101", HELD_ROW)]
        answers = [asyncio.ensure_future(editor.pull(uri))]
        editor.rewrite(uri, "\n" + HELD)
        answers.append(asyncio.ensure_future(editor.pull(uri)))
        assert codes(await answers[1]) == [("GPU101", HELD_ROW + 1)]
        await answers[0]
        assert await editor.pull(editor.uri("unknown.py")) == []
        editor.save(uri)
        await editor.until(lambda: editor.refreshes == 1)
        editor.close_document(uri)
        assert await editor.pull(uri) == []
        assert editor.published == []


async def test_a_syntax_error_is_one_diagnostic(tmp_path: Path) -> None:
    async with editing(tmp_path) as editor:
        uri = editor.open("train.py", HELD)
        assert codes(await editor.diagnostics(uri)) == [("GPU101", HELD_ROW)]
        editor.rewrite(uri, HELD + "def unfinished(:\n" * 3)
        (found,) = await editor.diagnostics(uri)
        assert (found.code, found.severity) == ("GPU000", types.DiagnosticSeverity.Error)
        assert "syntax error" in found.message
        assert await editor.actions(uri, found.range) == []
        editor.rewrite(uri, HELD)
        assert codes(await editor.diagnostics(uri)) == [("GPU101", HELD_ROW)]
        for odd in ("\ud800", "\0", "", "(" * 2_000, "\ufeff" + HELD):
            editor.rewrite(uri, odd)
            await editor.diagnostics(uri)
        assert codes(await editor.diagnostics(uri)) == [("GPU101", HELD_ROW)]


async def test_which_documents_are_checked(tmp_path: Path) -> None:
    (tmp_path / "gpulint.toml").write_text('extend-exclude = ["generated"]\n')
    (tmp_path / "generated").mkdir()

    async with editing(tmp_path, able(pull=True)) as editor:
        expected = {
            editor.open("train.py", HELD): True,
            editor.open("script", HELD): True,  # the editor says that it is Python
            editor.open("generated/train.py", HELD): False,
            editor.open("notes.md", HELD, "markdown"): False,
            editor.open("vscode-notebook-cell:/book.ipynb#X1", HELD): False,
        }
        found = {uri: bool(await editor.pull(uri)) for uri in expected}
        assert found == expected
        script = editor.open("run.sh", "export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:32\n", "shellscript")
        (setting,) = await editor.pull(script)
        assert setting.code == "GPU601"
        titles = [item.title for item in await editor.actions(script, setting.range)]
        assert not any("suppress" in title for title in titles)


async def test_related_places_and_tags(tmp_path: Path) -> None:
    (tmp_path / "keeper.py").write_text(KEEPER)
    old = "import torch\n\nprint(torch.cuda.memory_cached())  # gpulint: ignore[GPU101]\n"

    async with editing(tmp_path) as editor:
        uri = editor.open("train.py", USES_KEEPER)
        (found,) = await editor.diagnostics(uri)
        reason, other = found.related_information or ()
        assert reason.message.startswith("reason: ")
        assert reason.location == types.Location(uri, found.range)
        assert other.location.uri == editor.uri("keeper.py")
        assert other.location.range.start.line == 1
        uri = editor.open("old.py", old)
        tags = {str(item.code): list(item.tags or ()) for item in await editor.diagnostics(uri)}
        assert tags == {
            "GPU603": [types.DiagnosticTag.Deprecated],
            "GPU001": [types.DiagnosticTag.Unnecessary],
        }


@pytest.mark.parametrize("pull", [False, True])
async def test_unsaved_text_stands_for_the_file_that_others_import(tmp_path: Path, pull: bool) -> None:
    (tmp_path / "keeper.py").write_text(KEEPER)
    harmless = KEEPER.replace("append(value)", "append(value.item())")

    async with editing(tmp_path, able(pull=pull)) as editor:

        async def found(uri: str, after: int) -> list[tuple[str, int]]:
            return codes(await editor.pull(uri) if pull else await editor.diagnostics(uri, after))

        user = editor.open("train.py", USES_KEEPER)
        assert await found(user, 0) == [("GPU104", HELD_ROW + 1)]
        keeper = editor.open("keeper.py", KEEPER)
        assert await found(keeper, 0) == []
        assert await found(user, 0) == [("GPU104", HELD_ROW + 1)]
        sent = len(editor.published)
        editor.rewrite(keeper, harmless)
        assert await found(user, sent) == []
        sent = len(editor.published)
        editor.close_document(keeper)  # what is on disk counts again
        assert await found(user, sent) == [("GPU104", HELD_ROW + 1)]
        sent = len(editor.published)
        (tmp_path / "keeper.py").write_text(harmless)
        editor.files_changed("keeper.py")
        assert await found(user, sent) == []


async def test_callers_in_unsaved_files_count_once_a_document_is_saved(tmp_path: Path) -> None:
    scores = (
        "import torch\nfrom torch import nn\n\n\ndef scores(model: nn.Module, batches):\n"
        "    model.eval()\n    return [model(batch.cuda()).argmax(-1).tolist() for batch in batches]\n"
    )
    guarded = (
        "import torch\nfrom scoring import scores\n\n\ndef run(model, batches):\n"
        "    with torch.no_grad():\n        return scores(model, batches)\n"
    )
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "scoring.py").write_text(scores)
    (tmp_path / "run.py").write_text(guarded)

    async with editing(tmp_path) as editor:
        scoring, run = editor.open("scoring.py", scores), editor.open("run.py", guarded)
        assert await editor.diagnostics(scoring) == []
        editor.rewrite(run, guarded.replace("with torch.no_grad()", "if batches is not None"))
        await editor.diagnostics(run)
        sent = len(editor.published)
        editor.save(run)
        assert codes(await editor.diagnostics(scoring, sent)) == [("GPU201", 7)]
        editor.rewrite(run, guarded)
        editor.rewrite(run, guarded + "def unfinished(")
        await editor.diagnostics(run)
        sent = len(editor.published)
        editor.rewrite(scoring, scores)
        assert codes(await editor.diagnostics(scoring, sent)) == [("GPU201", 7)], "what parsed last counts"
        editor.rewrite(run, guarded)
        editor.rewrite(scoring, scores)
        assert await editor.diagnostics(scoring) == []


async def test_hover_on_findings_and_on_codes_in_comments(tmp_path: Path) -> None:
    text = HELD.replace("+= loss\n", "+= loss  # gpulint: ignore[GPU101, GPU5] -- é\n") + "GPU101 = 1\n"

    async with editing(tmp_path) as editor:
        uri = editor.open("train.py", HELD)
        told = await editor.hover_at(uri, HELD_ROW - 1, 12)
        assert told.startswith("**GPU101** `total` adds up `loss`")
        for part in ("*reason:*", "*cost:*", "*fix:*", "## What it costs", "## Fix safety"):
            assert part in told
        assert await editor.hover_at(uri, 0, 0) == ""
        assert await editor.hover_at(uri, 10_000, 3) == ""

        editor.rewrite(uri, text)
        line = text.split("\n")[HELD_ROW - 1]
        told = await editor.hover_at(uri, HELD_ROW - 1, line.index("GPU101") + 2)
        assert told.startswith("# GPU101 held-graph")
        assert "## What it does" in told
        told = await editor.hover_at(uri, HELD_ROW - 1, line.index("GPU5") + 1)
        assert "- GPU501 empty-cache-in-hot-loop: " in told
        assert await editor.hover_at(uri, text.count("\n") - 1, 2) == "", "a name in code is no comment"
    async with editing(tmp_path, able(markdown=False)) as editor:
        uri = editor.open("train.py", HELD)
        params = types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(HELD_ROW - 1, 12))
        answer = await editor.text_document_hover_async(params)
        assert answer.contents.kind == types.MarkupKind.PlainText


EVALUATING = """\
import torch
from torch import nn

model = nn.Linear(4096, 2048).to("cuda")


def evaluate(loader):
    model.eval()
    hits = 0
    for inputs, targets in loader:
        hits += (model(inputs).argmax(1) == targets).sum().item()
    return hits
"""


async def test_hover_tells_what_was_considered_in_a_line(tmp_path: Path) -> None:
    """With a finding on what it stands; where nothing is told, what speaks against it."""
    row, column = 10, 20
    guarded = EVALUATING.replace("def evaluate", "@torch.no_grad()\ndef evaluate")

    async with editing(tmp_path) as editor:
        uri = editor.open("train.py", EVALUATING)
        told = await editor.hover_at(uri, row, column)
        assert told.startswith("**GPU201** `model` runs with grad enabled")
        assert told.index("*fix:*") < told.index("- *grad* yes: ") < told.index("## What it does")
        beside = await editor.hover_at(uri, row, 2)
        assert beside.startswith("**GPU201** eval-with-grad: `model` told")
        assert "- *grad* yes" in beside
        assert "## What it does" not in beside

        editor.rewrite(uri, guarded)
        told = await editor.hover_at(uri, row + 1, column)
        assert told.startswith(
            "**GPU201** eval-with-grad: `model` not told\n\n- *grad* no: grad is off (line 7)"
        )
        assert await editor.hover_at(uri, row, 2) == "", "nothing is considered there"

        editor.rewrite(uri, guarded.replace("def evaluate", "def evaluate("))
        assert await editor.hover_at(uri, row + 1, column) == "", "it cannot be read"
        settings = editor.open("run.sh", "# PYTORCH_CUDA_ALLOC_CONF: model.eval()\n")
        assert await editor.hover_at(settings, 0, 3) == ""


async def test_configuration_is_read_anew(tmp_path: Path) -> None:
    """With watched files at once, without them at the next check; a wrong one is told and the last right one holds."""
    (tmp_path / "inner").mkdir()
    settings = tmp_path / "gpulint.toml"

    async with editing(tmp_path) as editor:
        await editor.until(lambda: bool(editor.registered))
        assert editor.registered[0].method == types.WORKSPACE_DID_CHANGE_WATCHED_FILES
        outer, inner = editor.open("train.py", HELD), editor.open("inner/train.py", HELD)
        assert await editor.diagnostics(outer)
        assert await editor.diagnostics(inner)

        sent = len(editor.published)
        settings.write_text('ignore = ["GPU101"]\n')
        editor.files_changed("gpulint.toml")
        assert await editor.diagnostics(outer, sent) == []
        assert await editor.diagnostics(inner, sent) == []

        (tmp_path / "inner/pyproject.toml").write_text('[tool.gpulint]\nseverity = {GPU1 = "info"}\n')
        editor.rewrite(inner, HELD)
        (found,) = await editor.diagnostics(inner)
        assert found.severity == types.DiagnosticSeverity.Information

        settings.write_text('ignore = ["GPU999"]\n')
        editor.rewrite(outer, HELD)
        assert await editor.diagnostics(outer) == []
        await editor.until(lambda: bool(editor.shown))
        assert 'gpulint.toml: ignore: unknown rule "GPU999"' in editor.shown[0]
        settings.unlink()
        editor.rewrite(outer, HELD)
        assert await editor.diagnostics(outer)


async def test_settings_of_the_editor(tmp_path: Path) -> None:
    text = HELD + "\n\nprint(torch.cuda.memory_cached())\n"
    (tmp_path / "gpulint.toml").write_text('ignore = ["GPU603"]\n')

    options = {"select": ["GPU6"], "unsafeFixes": "yes", "colour": 1}
    async with editing(tmp_path, options=options) as editor:
        uri = editor.open("train.py", text)
        assert codes(await editor.diagnostics(uri)) == [("GPU603", 16)]
        await editor.until(lambda: len(editor.shown) == 2)
        assert editor.shown == [
            "gpulint: unknown setting 'colour'",
            'gpulint: unsafeFixes: expected true or false, got "yes"',
        ]
        sent = len(editor.published)
        settings = {"gpulint": {"ignore": ["GPU6", "GPU101"]}}
        editor.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings))
        assert await editor.diagnostics(uri, sent) == []


async def test_a_failing_rule_is_logged_and_the_server_goes_on(tmp_path: Path) -> None:
    """The rule also prints, which must not get into the stream of messages."""
    printed = 'print("Content-Length: 5\\r\\n\\r\\nxxxxx", flush=True)'
    misbehaving(tmp_path, f'{printed}; raise ZeroDivisionError("on purpose")')

    async with editing(tmp_path) as editor:
        uri = editor.open("train.py", HELD + "\n\nmisbehave = 1\n")
        assert await editor.diagnostics(uri) == []
        await editor.until(lambda: bool(editor.logged) and bool(editor.shown))
        assert "ZeroDivisionError: on purpose" in editor.logged[0]
        assert "own.py" in editor.logged[0]
        assert "its log says how" in editor.shown[0]
        editor.rewrite(uri, CLEAN + "misbehave = 2\n")
        assert await editor.diagnostics(uri) == []
        assert len(editor.shown) == 1
        (tmp_path / "gpulint.toml").unlink()
        editor.rewrite(uri, HELD)
        assert codes(await editor.diagnostics(uri)) == [("GPU101", HELD_ROW)]


# --- without a client's manners ------------------------------------------------------------------------------------


def answers(output: bytes) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while output:
        head, _, rest = output.partition(b"\r\n\r\n")
        length = int(dict(line.split(b": ") for line in head.split(b"\r\n"))[b"Content-Length"])
        found.append(json.loads(rest[:length]))
        output = rest[length:]
    return found


def test_wrong_requests_are_answered(tmp_path: Path) -> None:
    hover = {"textDocument": {"uri": "file:///none.py"}, "position": {"line": 0, "character": 0}}
    done = talk(
        message({"id": 7, "method": "textDocument/hover", "params": hover})
        + INITIALIZE
        + message({"method": "initialized", "params": {}})
        + message(b"{ this is no JSON")
        + message(b"[1, 2]")
        + message(b"{}")
        + message({"id": 2, "method": "textDocument/hover", "params": {"position": "up"}})
        + message({"id": 3, "method": "no/such/method", "params": {}})
        + message({"method": "no/such/notification", "params": {}})
        + message({"method": "textDocument/didChange", "params": {"textDocument": 5}})
        + message(
            {
                "method": "textDocument/didChange",
                "params": {"textDocument": {"uri": "file:///x.py", "version": 2}, "contentChanges": []},
            }
        )
        + message({"method": "textDocument/didClose", "params": {"textDocument": {"uri": "file:///x.py"}}})
        + message({"id": 4, "method": "textDocument/hover", "params": hover})
        + message({"id": 5, "method": "shutdown"})
        + message({"method": "exit"}),
        tmp_path,
    )
    assert done.returncode == 0, done.stderr.decode()
    by_id = {answer["id"]: answer for answer in answers(done.stdout) if "id" in answer}
    assert by_id[7]["error"]["code"] == -32002
    assert "capabilities" in by_id[1]["result"]
    assert by_id[2]["error"]["code"] == -32602
    assert by_id[3]["error"]["code"] == -32601
    assert by_id[4]["result"] is None
    assert by_id[5]["result"] is None
    assert not any("showMessage" in answer.get("method", "") for answer in answers(done.stdout))


@pytest.mark.parametrize(
    "given",
    [b"", INITIALIZE, INITIALIZE + b"Content-Length: 99\r\n\r\n{", INITIALIZE + message({"method": "exit"})],
)
def test_the_server_ends_with_its_client(tmp_path: Path, given: bytes) -> None:
    done = talk(given, tmp_path)
    assert done.returncode == 1
    assert (b"Traceback" in done.stderr) == given.endswith(b"{"), done.stderr.decode()


def test_the_server_ends_in_the_middle_of_a_check(tmp_path: Path) -> None:
    """The client dies with a request under way in a rule that takes an hour."""
    misbehaving(tmp_path, "open('started', 'w').close(); time.sleep(3600)")
    item = {
        "uri": (tmp_path / "train.py").as_uri(),
        "languageId": "python",
        "version": 1,
        "text": "misbehave = 1\n",
    }
    with subprocess.Popen(
        SERVER, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
    ) as server:
        server.stdin.write(INITIALIZE + message({"method": "initialized", "params": {}}))
        server.stdin.write(message({"method": "textDocument/didOpen", "params": {"textDocument": item}}))
        server.stdin.flush()
        deadline = time.monotonic() + 60
        while not (tmp_path / "started").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        server.stdin.close()
        assert server.wait(20) == 1


def test_an_interrupt_ends_the_server(tmp_path: Path) -> None:
    with subprocess.Popen(
        SERVER, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
    ) as server:
        server.stdin.write(INITIALIZE)
        server.stdin.flush()
        assert server.stdout.readline().startswith(b"Content-Length")
        server.send_signal(signal.SIGINT)
        assert server.wait(20) == -signal.SIGINT


def test_without_pygls_one_sentence_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "pygls.py").write_text("raise ModuleNotFoundError('none', name='pygls')\n")
    done = gpulint("server", cwd=tmp_path, env=environment(PYTHONPATH=str(tmp_path)), status=2)
    assert done.stderr.endswith(b"which is not installed: pip install 'gpulint[server]'\n")
