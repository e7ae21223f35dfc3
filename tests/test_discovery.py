import os
from pathlib import Path

from support import run_command

from gpulint.config import ConfigResolver, Overrides
from gpulint.source.discovery import Discovery, discover


def make(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n")


def search(root: Path, *paths: str, force: bool = False, overrides: Overrides | None = None) -> Discovery:
    return discover(
        [str(root / path) for path in paths or (".",)], ConfigResolver(overrides=overrides), force
    )


def names(root: Path, found: Discovery) -> list[str]:
    return [os.path.relpath(target.path, root) for target in found.targets]


def test_python_files_in_order_of_names(tmp_path: Path) -> None:
    make(tmp_path, "b.py", "a/z.py", "a/b/c.py", "notes.txt", "c.pyc", ".hidden.py", "Makefile")
    assert names(tmp_path, search(tmp_path)) == [".hidden.py", "b.py", "a/z.py", "a/b/c.py"]


def test_default_excludes_hold_below_the_named_directory_only(tmp_path: Path) -> None:
    make(tmp_path, "venv/lib/a.py", "build/b.py", "src/node_modules/c.py", "src/d.py", "__pycache__/e.py")
    assert names(tmp_path, search(tmp_path)) == ["src/d.py"]
    assert names(tmp_path, search(tmp_path, "venv/lib")) == ["venv/lib/a.py"]
    assert names(tmp_path, search(tmp_path, "venv")) == ["venv/lib/a.py"]


def test_named_files_are_checked_whatever_excludes_them(tmp_path: Path) -> None:
    make(tmp_path, "build/a.py", "script", ".gitignore")
    (tmp_path / ".gitignore").write_text("*.py\n")
    assert names(tmp_path, search(tmp_path, "build/a.py", "script")) == ["build/a.py", "script"]
    assert names(tmp_path, search(tmp_path, "build/a.py", force=True)) == []


def test_a_directory_that_git_ignores_is_searched_when_it_is_named(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    make(tmp_path, "gen/b.py", "pkg/c.py", "pkg/drop_me.py")
    (tmp_path / ".gitignore").write_text("gen/\n*_me.py\n")
    assert names(tmp_path, search(tmp_path, "pkg")) == ["pkg/c.py"]
    assert names(tmp_path, search(tmp_path, "gen")) == ["gen/b.py"]


def test_gitignore_agrees_with_git(tmp_path: Path) -> None:
    """Against git itself, on patterns of every kind."""
    import subprocess

    patterns = "*.log.py\nfoo/\n/bar\nbaz/**/qux.py\n!baz/keep/qux.py\n# comment\n\\#hash.py\ndir/sub\n"
    patterns += "wild?.py\n[ab].py\nout/*\n!out/y.py\n"
    make(tmp_path, *"x.log.py foo/a.py deep/foo/b.py bar/c.py deep/bar/d.py baz/1/2/qux.py".split())
    make(
        tmp_path,
        *"baz/keep/qux.py #hash.py dir/sub/e.py deep/dir/sub/f.py wild1.py wild12.py a.py c.py".split(),
    )
    make(tmp_path, *"nested/one.py nested/two.py nested/deeper/one.py out/x.py out/y.py".split())
    (tmp_path / ".gitignore").write_text(patterns)
    (tmp_path / "nested/.gitignore").write_text("/one.py\n!two.py\n")
    (tmp_path / "excluded.py").write_text("")
    git = ["git", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "-q"], check=True)
    (tmp_path / ".git/info").mkdir(exist_ok=True)
    (tmp_path / ".git/info/exclude").write_text("excluded.py\n")
    listed = run_command(*git, "ls-files", "--others", "--exclude-standard", "*.py", status=0)
    expected = sorted(line.strip('"') for line in listed.stdout.splitlines())
    assert sorted(names(tmp_path, search(tmp_path))) == expected


def test_gitignore_can_be_switched_off(tmp_path: Path) -> None:
    make(tmp_path, "a.py", "b.py")
    (tmp_path / ".gitignore").write_text("b.py\n")
    assert names(tmp_path, search(tmp_path)) == ["a.py"]
    (tmp_path / "gpulint.toml").write_text("respect-gitignore = false\n")
    assert names(tmp_path, search(tmp_path)) == ["a.py", "b.py"]


def test_configured_excludes(tmp_path: Path) -> None:
    make(tmp_path, "src/a.py", "src/gen/b.py", "src/c_pb2.py", "build/d.py", "deep/src/gen/e.py")
    (tmp_path / "gpulint.toml").write_text('extend-exclude = ["src/gen", "*_pb2.py"]\n')
    assert names(tmp_path, search(tmp_path)) == ["deep/src/gen/e.py", "src/a.py"]
    (tmp_path / "gpulint.toml").write_text('exclude = ["src/**"]\n')
    assert names(tmp_path, search(tmp_path)) == ["build/d.py", "deep/src/gen/e.py"]
    assert names(tmp_path, search(tmp_path, overrides=Overrides(exclude=("nothing",)))) != []


def test_each_file_once(tmp_path: Path) -> None:
    make(tmp_path, "a.py", "d/b.py")
    (tmp_path / "link.py").symlink_to("a.py")
    found = search(tmp_path, "a.py", "a.py", "./d/../a.py", ".", "d", "link.py")
    assert names(tmp_path, found) == ["a.py", "d/b.py"]


def test_loops_links_and_odd_entries(tmp_path: Path) -> None:
    make(tmp_path, "a.py", "sub/b.py", "module.py/inner.py", "outside/c.py")
    (tmp_path / "sub/up").symlink_to("..")
    (tmp_path / "sub/self").symlink_to(".")
    (tmp_path / "sub/other").symlink_to("../outside")
    (tmp_path / "gone.py").symlink_to("nowhere")
    (tmp_path / "ring.py").symlink_to("ring.py")
    os.mkfifo(tmp_path / "pipe.py")
    found = search(tmp_path)
    assert names(tmp_path, found) == ["a.py", "module.py/inner.py", "outside/c.py", "sub/b.py"]
    problems = {os.path.relpath(problem.path, tmp_path): problem.error.message for problem in found.problems}
    assert set(problems) == {"sub/up", "sub/self", "gone.py", "ring.py", "pipe.py"}
    assert "directory loop" in problems["sub/up"]
    assert "broken" in problems["gone.py"]
    assert "itself" in problems["ring.py"]
    assert "pipe" in problems["pipe.py"]
    assert [os.path.relpath(path, tmp_path) for path, reason in found.skipped if "link" in reason] == [
        "sub/other"
    ]


def test_nearest_configuration(tmp_path: Path) -> None:
    make(tmp_path, "a.py", "one/b.py", "one/two/c.py")
    (tmp_path / "gpulint.toml").write_text('ignore = ["GPU1"]\n')
    (tmp_path / "one/two/pyproject.toml").write_text('[tool.gpulint]\nignore = ["GPU2"]\n')
    (tmp_path / "one/pyproject.toml").write_text("[tool.other]\nx = 1\n")
    by_name = {Path(target.path).name: target.config.ignore for target in search(tmp_path).targets}
    assert by_name == {"a.py": ("GPU1",), "b.py": ("GPU1",), "c.py": ("GPU2",)}
