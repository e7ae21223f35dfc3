"""`gpulint run`: starts a program with the right allocator variable and passes signals and exit status through."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpulint.memory import alloc_conf
from gpulint.operator import agent

PASSED_ON: Final = tuple(
    getattr(signal, name)
    for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM")
    if hasattr(signal, name)
)
_PR_SET_PDEATHSIG: Final = 1
_SENT_BY_A_PROCESS: Final = 0  # si_code SI_USER and below; above it the kernel speaks, for the terminal


class CannotStart(RuntimeError):
    """The program cannot be started; the message says why. `status` is what a shell would exit with."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Ended:
    """How the program ended: exactly one of `code` and `signal` is set. `folder` holds what its processes noted."""

    code: int | None
    signal: int | None
    began: float
    seconds: float
    folder: Path
    variable: str | None = None
    value: str | None = None


# -- the environment -------------------------------------------------------------------------------------------


def interpreter_of(command: Sequence[str]) -> str | None:
    """The Python that a command line will run: `python`, `env X=1 python`, or a script such as torchrun whose
    first line names it. None where it cannot be told."""
    for word in command:
        path = shutil.which(word)
        if path is None:
            continue
        if Path(word).name.startswith("python"):
            return path
        found = _shebang(path)
        if found is not None:
            return found
    return None


def _shebang(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            first = file.readline(512)
    except OSError:
        return None
    if not first.startswith(b"#!"):
        return None
    words = first[2:].decode(errors="replace").split()
    for word in words:
        if Path(word).name.startswith("python"):
            return shutil.which(word)
    return None


def torch_version_of(interpreter: str | None) -> str | None:
    """The version of torch that an interpreter has, without importing it; None where it has none."""
    if interpreter is None:
        return None
    code = "import importlib.metadata as m; print(m.version('torch'))"
    try:
        done = subprocess.run(
            [interpreter, "-c", code], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = done.stdout.strip().splitlines()[-1:] if done.returncode == 0 else []
    return version[0] if version else None


def allocator_environment(
    wanted: str, version: str | None, environment: Mapping[str, str]
) -> tuple[str, str] | None:
    """The variable and its value for `--alloc-conf wanted`; None where nothing is to be set.

    "auto" adds what measurements recommend to what the environment says already, which wins; any other text is
    set as it is. Raises ValueError for text that is not of the allocator's form.
    """
    variable = alloc_conf.variable_for(version)
    if wanted != "auto":
        return variable, alloc_conf.render(alloc_conf.parse(wanted))
    present = {**_read(environment, alloc_conf.OLD), **_read(environment, alloc_conf.NEW)}
    merged = {**alloc_conf.automatic(version, sys.platform), **present}
    return (variable, alloc_conf.render(merged)) if merged else None


def _read(environment: Mapping[str, str], name: str) -> dict[str, str]:
    return alloc_conf.parse(environment.get(name, ""))


def child_environment(
    environment: Mapping[str, str], folder: Path, interval: float, allocator: tuple[str, str] | None
) -> dict[str, str]:
    """The program's environment: the recording agent on PYTHONPATH, and the allocator variable under one name."""
    made = dict(environment)
    if allocator is not None:
        made.pop(alloc_conf.OLD, None)
        made.pop(alloc_conf.NEW, None)
        made[allocator[0]] = allocator[1]
    made[agent.FOLDER] = str(folder)
    made[agent.INTERVAL] = str(interval)
    made["PYTHONPATH"] = os.pathsep.join([str(folder), *filter(None, [environment.get("PYTHONPATH")])])
    return made


# -- running ---------------------------------------------------------------------------------------------------


def launch(command: Sequence[str], allocator: tuple[str, str] | None, interval: float = 0.2) -> Ended:
    """Run a program to its end, in the same process group and on the same terminal.

    Signals that reach only this process are passed on; those that the terminal or somebody sends to the whole
    group reach the program by themselves. If this process is killed, so is the program. Raises CannotStart.
    """
    folder = Path(tempfile.mkdtemp(prefix="gpulint-run-"))
    shutil.copyfile(agent.__file__, folder / "sitecustomize.py")
    environment = child_environment(os.environ, folder, interval, allocator)
    began = time.time()
    with _signals_held() as witness:
        code = _wait(_start(command, environment, folder), witness)
    variable, value = allocator or (None, None)
    return Ended(
        code if code >= 0 else None,
        -code if code < 0 else None,
        began,
        time.time() - began,
        folder,
        variable,
        value,
    )


def _start(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(list(command), env=environment, preexec_fn=_in_the_child())
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, FileNotFoundError):
            raise CannotStart(f"{command[0]}: command not found", 127) from error
        raise CannotStart(f"{command[0]} cannot be started: {error.strerror}", 126) from error


def _in_the_child() -> Callable[[], None]:
    """What the child does before it becomes the program. Everything is looked up before the fork."""
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    unblock, passed = signal.pthread_sigmask, PASSED_ON

    def prepare() -> None:
        unblock(signal.SIG_UNBLOCK, (*passed, signal.SIGCHLD))
        if library is not None:
            library.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)

    return prepare


@contextlib.contextmanager
def _signals_held() -> Iterator[int | None]:
    """Hold signals back so that they can be taken one by one with their origin; give the witness's pipe."""
    held = (*PASSED_ON, signal.SIGCHLD)
    # A disposition of "ignore" would discard SIGCHLD before it can be waited for.
    earlier = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, held)
    witness = _Witness() if hasattr(signal, "sigwaitinfo") else None
    try:
        yield witness.pipe if witness is not None else None
    finally:
        if witness is not None:
            witness.end()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.signal(signal.SIGCHLD, earlier or signal.SIG_DFL)


class _Witness:
    """A second process of the group that notes which signals reach it: those reach the program as well, and
    passing them on would deliver them twice."""

    def __init__(self) -> None:
        library = ctypes.CDLL(None) if sys.platform == "linux" else None
        self.pipe, writing = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                if library is not None:
                    library.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
                self._note(writing)
            finally:
                os._exit(0)
        os.close(writing)

    def _note(self, writing: int) -> None:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(nowhere, standard)
        os.close(self.pipe)
        while True:
            os.write(writing, bytes([signal.sigwaitinfo(PASSED_ON).si_signo]))

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        os.close(self.pipe)


def _wait(child: subprocess.Popen[bytes], witness: int | None) -> int:
    """The program's return code, negative for a signal; passes signals on until then."""
    if witness is None:
        return _wait_with_handlers(child)
    while True:
        code = child.poll()
        if code is not None:
            return code
        got = signal.sigtimedwait((*PASSED_ON, signal.SIGCHLD), 5.0)
        if got is None or got.si_signo == signal.SIGCHLD:
            continue
        if got.si_code > _SENT_BY_A_PROCESS or _reached_the_group(witness, got.si_signo):
            continue
        with contextlib.suppress(ProcessLookupError):
            child.send_signal(got.si_signo)


def _reached_the_group(witness: int, number: int) -> bool:
    limit = time.monotonic() + 0.1
    while (left := limit - time.monotonic()) > 0 and select.select([witness], [], [], left)[0]:
        if number in os.read(witness, 64):
            return True
    return False


def _wait_with_handlers(child: subprocess.Popen[bytes]) -> int:
    """Where signals cannot be taken with their origin (macOS): pass on all but those of the terminal."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    before = {}
    for number in PASSED_ON:
        at_terminal = number in (signal.SIGINT, signal.SIGQUIT) and sys.stdin.isatty()
        before[number] = signal.signal(
            number, signal.SIG_IGN if at_terminal else lambda got, _: child.send_signal(got)
        )
    try:
        return child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def leave_as(ended: Ended) -> int:
    """The status to exit with; does not return where the program died of a signal: this process dies of it too."""
    if ended.signal is None:
        return ended.code or 0
    sys.stdout.flush()
    sys.stderr.flush()
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        # The program has left its core dump, if any; ours would say nothing.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError, ValueError):
        signal.signal(ended.signal, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [ended.signal])
    os.kill(os.getpid(), ended.signal)
    time.sleep(1)
    return 128 + ended.signal
