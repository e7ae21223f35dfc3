"""Other texts for source files: seen by imports, tracebacks, inspect, spawned workers and other processes; not by the disk."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from textwrap import dedent

import pytest
from support import run_command

from gpulint.runtime.trying import overlay

MODULE = "def answer():\n    return 41\n"
FIXED = "# a line more\ndef answer():\n    return 42\n"


def start(tmp_path: Path, script: str, text: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a process of its own that has an overlay with the text of one file."""
    (tmp_path / "main.py").write_text(dedent(script), encoding="utf-8")
    folder = tmp_path / "overlay"
    folder.mkdir()
    written = overlay.write(str(folder), {str(tmp_path / "module.py"): text.encode()}, variables)
    return run_command(sys.executable, "main.py", cwd=tmp_path, env={**os.environ, **written}, timeout=60)


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "module.py"
    path.write_text(MODULE, encoding="utf-8")
    return path


def test_imports_inspect_and_linecache_see_the_text(tmp_path: Path, module: Path) -> None:
    script = """
        import inspect, json, linecache, module
        linecache.clearcache()
        print(json.dumps([
            module.answer(), inspect.getsource(module.answer), inspect.getsourcelines(module.answer)[1],
            module.__file__, module.answer.__code__.co_filename, linecache.getline(module.__file__, 1),
            module.__loader__.get_source("module").splitlines()[0], open(module.__file__).read(),
        ]))
    """
    done = start(tmp_path, script, FIXED)
    assert done.returncode == 0, done.stderr
    answer, source, line, file, code_file, first, loaded, disk = json.loads(done.stdout)
    assert (answer, line) == (42, 2)
    assert source == "def answer():\n    return 42\n"
    assert file == code_file == str(module)
    assert first == "# a line more\n"
    assert loaded == "# a line more"
    assert disk == MODULE


def test_nothing_is_left_on_the_disk(tmp_path: Path, module: Path) -> None:
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    import_it = [sys.executable, "-c", "import module; print(module.answer())"]
    subprocess.run(import_it, cwd=tmp_path, env=plain, check=True)  # writes bytecode of the file
    cached = {path: path.read_bytes() for path in (tmp_path / "__pycache__").iterdir()}
    done = start(tmp_path, "import module\nprint(module.answer())", FIXED)
    assert done.stdout == "42\n", done.stderr
    assert module.read_text(encoding="utf-8") == MODULE
    assert {path: path.read_bytes() for path in (tmp_path / "__pycache__").iterdir()} == cached
    after = subprocess.run(import_it, cwd=tmp_path, env=plain, capture_output=True, check=True)
    assert after.stdout == b"41\n"


def test_tracebacks_show_the_fixed_line_in_threads_too(tmp_path: Path, module: Path) -> None:
    failing = "def answer():\n    # moved\n    raise ValueError('from the overlay')\n"
    script = "import module, threading\nt = threading.Thread(target=module.answer)\nt.start()\nt.join()\nmodule.answer()"
    done = start(tmp_path, script, failing)
    assert done.returncode == 1
    assert done.stderr.count(f'File "{module}", line 3, in answer') == 2
    assert done.stderr.count("raise ValueError('from the overlay')") == 2
    assert "Exception in thread" in done.stderr


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_workers_see_the_text(tmp_path: Path, module: Path, method: str) -> None:
    script = f"""
        import multiprocessing, module
        def work(number):
            import inspect
            return module.answer() + number, inspect.getsource(module.answer)
        if __name__ == "__main__":
            with multiprocessing.get_context("{method}").Pool(1) as pool:
                print(pool.map(work, [1]))
    """
    done = start(tmp_path, script, FIXED)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[(43,"), done.stderr


def test_another_python_sees_the_text_and_its_own_surroundings(tmp_path: Path, module: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text("import builtins\nbuiltins.theirs = True\n", encoding="utf-8")
    script = """
        import subprocess, sys
        program = "import module, sys, builtins; print(module.answer(), builtins.theirs, *sys.path, sep='|')"
        print(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout)
    """
    done = start(tmp_path, script, FIXED, PYTHONPATH=str(site))
    assert done.returncode == 0, done.stderr
    answer, theirs, *paths = done.stdout.strip().split("|")
    assert (answer, theirs) == ("42", "True")
    assert str(site) in paths
    assert str(tmp_path / "overlay") not in paths


def test_this_process_is_as_it_was() -> None:
    assert "_gpulint_overlay" not in sys.modules
    assert threading.excepthook is not overlay._show_in_thread
