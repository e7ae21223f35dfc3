"""Code actions of the language server: applied by an editor, they give what the command line gives."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from server_support import able, at, editing
from support import HELD, HELD_ROW, gpulint

from gpulint import check_paths
from gpulint.findings import Finding
from gpulint.source.edits import apply_edits

FIXTURES = Path(__file__).parents[1] / "fixtures"
# Actions that are not one finding's fix.
GENERAL = re.compile("suppress with|all of this rule")


def copied(folder: Path) -> list[Path]:
    """Every second of the fixtures in a folder of their own; some with the line ends of Windows, some without a last line end."""
    shutil.copytree(FIXTURES, folder, ignore=shutil.ignore_patterns("__pycache__", ".gpulint_cache"))
    for left_out in sorted(folder.glob("*.py"))[1::2]:
        left_out.unlink()
    files = sorted(folder.rglob("*.py"))
    for number, file in enumerate(files):
        raw = file.read_bytes()
        if number % 3 == 1:
            file.write_bytes(raw.replace(b"\n", b"\r\n"))
        elif number % 3 == 2:
            file.write_bytes(raw.rstrip(b"\n"))
    return files


@pytest.mark.parametrize("unsafe", [False, True])
async def test_fix_all_gives_what_the_command_line_gives(tmp_path: Path, unsafe: bool) -> None:
    files = copied(tmp_path / "open")
    shutil.copytree(tmp_path / "open", tmp_path / "fixed")
    gpulint("--fix", *["--unsafe-fixes"] * unsafe, "--no-cache", "-j1", "fixed", cwd=tmp_path)
    changed = 0
    options = {"unsafeFixes": unsafe}
    async with editing(tmp_path, able(pull=True, resolve=not unsafe), options) as editor:
        for file in files:
            text = file.read_bytes().decode()
            expected = (tmp_path / "fixed" / file.relative_to(tmp_path / "open")).read_bytes().decode()
            uri = editor.open(str(file.relative_to(tmp_path)), text)
            offered = await editor.actions(uri, at(0), ["source.fixAll"])
            assert len(offered) == (text != expected), file
            for action in offered:
                assert action.kind == "source.fixAll.gpulint"
                if not unsafe:
                    assert action.edit is None
                    action = await editor.code_action_resolve_async(action)
                assert editor.after(action, uri) == expected, file
                changed += 1
            editor.close_document(uri)
    assert changed > 3


async def test_every_quick_fix_gives_what_its_fix_gives(tmp_path: Path) -> None:
    files = copied(tmp_path / "open")
    findings: dict[str, list[Finding]] = {}
    for finding in check_paths(tmp_path / "open"):
        findings.setdefault(finding.filename, []).append(finding)
    safe = unsafe = 0
    async with editing(tmp_path, able(pull=True)) as editor:
        for file in files:
            text = file.read_bytes().decode()
            uri = editor.open(str(file.relative_to(tmp_path)), text)
            for finding, told in zip(findings.get(str(file), []), await editor.pull(uri), strict=True):
                assert told.code == finding.code
                # Far away: the editor asks by its diagnostic, as for all of a line.
                offered = await editor.actions(uri, at(10_000), ["quickfix"], [told])
                fixes = [item for item in offered if not GENERAL.search(item.title)]
                assert len(fixes) == (finding.fix is not None)
                for action in fixes:
                    assert finding.fix.message in action.title
                    is_safe = finding.fix.applicability == "safe"
                    assert (action.is_preferred, "(unsafe)" in action.title) == (is_safe, not is_safe)
                    assert action.diagnostics == (told,)
                    assert editor.after(action, uri) == apply_edits(text, [finding], True)[0]
                    safe, unsafe = safe + is_safe, unsafe + (not is_safe)
    assert safe > 3
    assert unsafe > 3


async def test_one_quick_fix_is_the_whole_fix(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(HELD)
    gpulint("--fix", "train.py", cwd=tmp_path)

    async with editing(tmp_path) as editor:
        uri = editor.open("train.py", HELD)
        place = at(HELD_ROW - 1, 12)
        offered = await editor.actions(uri, place)
        assert [(action.kind, action.is_preferred) for action in offered] == [
            ("quickfix", True),
            ("quickfix", None),
            ("source.fixAll.gpulint", None),
        ]
        assert editor.after(offered[0], uri) == (tmp_path / "train.py").read_text()
        assert editor.after(offered[2], uri) == (tmp_path / "train.py").read_text()
        assert await editor.actions(uri, at(0)) == offered[2:], "elsewhere there is nothing to fix"
        assert await editor.actions(uri, place, ["refactor"]) == []
        assert await editor.actions(uri, place, ["source.organizeImports"]) == []
        assert len(await editor.actions(uri, place, ["source.fixAll.gpulint"])) == 1
        assert len(await editor.actions(uri, place, ["source"])) == 1
        # Asked right after a change, the actions are about the changed text.
        changed = "# one more line\n" + HELD
        editor.rewrite(uri, changed)
        (first, *_) = await editor.actions(uri, at(HELD_ROW, 12))
        assert editor.after(first, uri) == "# one more line\n" + (tmp_path / "train.py").read_text()


async def test_a_client_without_versions_gets_plain_changes(tmp_path: Path) -> None:
    async with editing(tmp_path, able(versioned=False)) as editor:
        uri = editor.open("train.py", HELD)
        (first, *_) = await editor.actions(uri, at(HELD_ROW - 1, 12))
        assert first.edit.document_changes is None
        assert "loss.detach()" in editor.after(first, uri)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
async def test_suppressing(tmp_path: Path, newline: str) -> None:
    """The comment silences exactly its finding, also beside an existing comment and inside a call of several lines."""
    two = HELD.replace("total += loss\n", "total += loss\n        torch.cuda.empty_cache()\n")
    broken = HELD.replace("total += loss", "total += (\n            loss\n        )  # note 😀")
    texts = [
        text.replace("\n", newline)
        for text in (two, HELD.replace("+= loss\n", "+= loss  # gpulint: ignore[GPU501]\n"), broken)
    ]

    async with editing(tmp_path, able(pull=True)) as editor:
        for text in texts:
            uri = editor.open("train.py", text)
            before = [item for item in await editor.pull(uri) if item.code != "GPU001"]
            assert before
            for told in before:
                offered = await editor.actions(uri, told.range, ["quickfix"], [told])
                wanted = f"suppress with # gpulint: ignore[{told.code}]"
                (action, *_) = [
                    item for item in offered if wanted in item.title and item.diagnostics == (told,)
                ]
                silenced = editor.after(action, uri)
                assert silenced.count(newline) == silenced.count("\n")
                editor.rewrite(uri, silenced)
                after = [item for item in await editor.pull(uri) if item.code != "GPU001"]
                assert sorted(item.message for item in after) == sorted(
                    item.message for item in before if item is not told
                )
                editor.rewrite(uri, text)
            editor.close_document(uri)


@pytest.mark.parametrize("resolve", [False, True])
async def test_fixing_all_of_one_rule(tmp_path: Path, resolve: bool) -> None:
    """Two of GPU101 and one of GPU501 can be fixed: what is offered for one rule leaves the other's line alone."""
    text = HELD.replace(
        "total += loss\n", "total += loss\n        other += loss\n        torch.cuda.empty_cache()\n"
    )
    text = text.replace("    total = 0.0\n", "    total = 0.0\n    other = 0.0\n")
    async with editing(tmp_path, able(pull=True, resolve=resolve)) as editor:
        uri = editor.open("train.py", text)
        told = {str(item.code): item for item in await editor.pull(uri)}
        assert set(told) == {"GPU101", "GPU501"}
        held, cleared = told["GPU101"].range, told["GPU501"].range
        (every,) = [item for item in await editor.actions(uri, held) if "fix all of this rule" in item.title]
        assert (every.kind, every.is_preferred) == ("quickfix", None)
        if resolve:
            assert every.edit is None
            every = await editor.code_action_resolve_async(every)
        fixed = editor.after(every, uri)
        assert "+= loss\n" not in fixed
        assert "empty_cache" in fixed
        alone = [item.title for item in await editor.actions(uri, cleared)]
        assert not any("this rule" in title for title in alone), "there is only one"


async def test_explaining_a_line(tmp_path: Path) -> None:
    async with editing(tmp_path) as editor:
        uri = editor.open("train.py", HELD)

        async def told(*arguments: Any) -> str:
            params = types.ExecuteCommandParams("gpulint.server.explainLine", list(arguments))
            return str(await editor.workspace_execute_command_async(params))

        about = await told(uri, HELD_ROW - 1)
        assert "total += loss" in about
        assert "**GPU101**" in about
        assert "*graph* yes" in about
        assert "No rule in force considered" in await told(uri, 0)
        assert await told(editor.uri("elsewhere.py"), 0) == ""
