"""Processes that skip what takes longest, importing: forks of a process that has imported it already.

What runs in them is the same program with its own arguments, directory, environment, streams, process id and exit
status; only the start of the interpreter is not its own. Tests about the start, or about what `/proc` tells of a process
(its command line, the environment it began with), start interpreters as always. So does everything where the
system cannot fork this way, and with GPULINT_TESTS_COLD=1, which shows whether a test owes its result to the fork.

As a program it is that process: `python warm.py KIND DESCRIPTOR`, of a listening socket; or the command in a fork of it:
`python warm.py gpulint ADDRESS ARGUMENT…`.
"""

import atexit
import contextlib
import fcntl
import gc
import importlib.abc
import importlib.machinery
import io
import json
import os
import pkgutil
import random
import re
import runpy
import secrets
import selectors
import shlex
import signal
import socket
import subprocess
import sys
import threading
import types
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def _possible() -> bool:
    if os.environ.get("GPULINT_TESTS_COLD") or not hasattr(os, "pidfd_open"):
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:  # a kernel, or a sandbox, without it
        return False
    return True


POSSIBLE = _possible()
TORCH = ("torch", "torch._dynamo", "torch.utils.checkpoint", "torch.utils.data")
NEEDS_TORCH = re.compile(
    r"gpulint\.(memory|testing|operator\.replaying|forecasting\.(child|emulating)"
    r"|runtime\.(child|holding|observing|probes|trying))\b"
)
SPAWNED = "--multiprocessing-fork"  # the last argument of what `multiprocessing` spawns
# What starts ranks, and what it starts them with.
TORCHRUN = ["-m", "torch.distributed.run"]
RANKS = "torch.distributed.elastic.multiprocessing.subprocess_handler.subprocess_handler"
PROGRAMS = ("gpulint.__main__", "gpulint.pytest_plugin", "gpulint.runtime.child.child")
# What an interpreter or torch reads when it starts, too late for a fork; of these a fork does what the interpreter would.
AT_START = ("PYTHON", "LD_", "LANG", "LC_", "TORCH", "PYTORCH", "OMP_", "MKL_", "KMP_")
AS_VARIABLES = {"-u": "PYTHONUNBUFFERED", "-B": "PYTHONDONTWRITEBYTECODE"}
STILL_READ = {"PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"}
OVERLAY = (
    "GPULINT_OVERLAY"  # names the folder whose `sitecustomize` a fork runs: it puts texts in place of files
)
OF_RANKS = ("TORCHELASTIC_", "TORCH_NCCL_")  # what torchrun sets, and only its ranks read
# A path may hide modules that the linter has imported by then; scripts have only torch and ours.
STILL_READ_BY = {"linter": STILL_READ, "torch": STILL_READ | {"PYTHONPATH"}}
# What a fork has, whether it is asked for or not.
FIXED = {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}

_addresses: dict[str, str] = {}  # of the processes that have imported, by kind
_running: list[subprocess.Popen[bytes]] = []
_starting = threading.Lock()
_spawned: dict[int, subprocess.Popen[Any]] = {}  # by their ids
_collecting = True  # whether this process may collect garbage itself


def address_of(kind: str) -> str:
    """The socket of the process of this kind, which is started where there is none yet."""
    with _starting:
        if kind not in _addresses:
            _addresses[kind] = _started(kind)
        return _addresses[kind]


def _started(kind: str) -> str:
    address = f"gpulint-tests-{secrets.token_hex(12)}"
    # Under this path its frames are taken for gpulint's own, which no traceback of a script shows.
    program = os.path.join(ROOT, "gpulint", "..", "tests", "warm.py")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind("\0" + address)
        listening.listen(64)
        process = subprocess.Popen(
            [sys.executable, program, kind, str(listening.fileno())],
            env={**os.environ, **FIXED},
            stdin=subprocess.PIPE,  # closed when this process ends, and the other ends then
            pass_fds=[listening.fileno()],
        )
    _running.append(process)
    return address


def _suits(kind: str, arguments: Sequence[str], environment: dict[str, str]) -> bool:
    """Whether a fork of this kind does what a new interpreter would."""

    def at_start(given: dict[str, str]) -> dict[str, str]:
        found = {
            name: value
            for name, value in given.items()
            if name.startswith(AT_START) and not name.startswith(OF_RANKS)
        }
        return FIXED | {name: value for name, value in found.items() if name not in STILL_READ_BY[kind]}

    def customizes(folder: str) -> bool:
        return any(os.path.exists(os.path.join(folder, f"{who}customize.py")) for who in ("site", "user"))

    plain = arguments[1] == "-m" or not arguments[1].startswith("-")
    known = arguments[0] == sys.executable and (plain or (arguments[1], arguments[-1]) == ("-c", SPAWNED))
    paths = environment.get("PYTHONPATH", "").split(os.pathsep)
    custom = any(customizes(path) for path in paths if path and path != environment.get(OVERLAY))
    return POSSIBLE and known and not custom and at_start(environment) == at_start({**os.environ})


def _collects(arguments: Sequence[str], folder: str) -> bool:
    """Whether what is watched may collect garbage itself, and what that costs is asked; what it spawns does as it does. Of a
    suite only memory is asked. Another module's name is no file, and says nothing."""
    if arguments[-1] == SPAWNED:
        return _collecting
    if len(arguments) < 3 or arguments[1:3] == ["-m", "pytest"]:
        return False
    try:
        return b"gc." in Path(folder, arguments[2]).read_bytes()
    except OSError:
        return True


class _Popen(subprocess.Popen[Any]):
    """What `subprocess.Popen` is, in a fork where that suits."""

    KIND = ""
    _asked: socket.socket | None = None

    def _execute_child(self, args: Any, *more: Any) -> None:
        executable, preexec_fn, _, pass_fds, cwd, env, _, _, shell, *pipes = more
        new_session = pipes[11]
        plain = not (shell or executable or preexec_fn or isinstance(args, (str, bytes)))
        arguments = [os.fspath(one) for one in args] if plain else []
        environment = dict(os.environ if env is None else env)
        while plain and arguments[1] in AS_VARIABLES:
            environment[AS_VARIABLES[arguments.pop(1)]] = "1"
        if not (plain and _suits(self.KIND, arguments, environment)):
            super()._execute_child(args, *more)  # type: ignore[misc]
            return
        order = {
            "arguments": arguments,
            "cwd": os.path.abspath(os.getcwd() if cwd is None else os.fspath(cwd)),
            "environment": environment,
            "new_session": bool(new_session),
            "collects": _collects(arguments, cwd or ""),
            "torch": address_of("torch") if self._may_run_scripts(arguments) else None,
            "descriptors": list(pass_fds),
        }
        text = json.dumps(order).encode()
        streams = [own if pipes[at] == -1 else pipes[at] for own, at in enumerate((0, 3, 5))]
        self._asked = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._asked.connect("\0" + address_of(self.KIND))
        socket.send_fds(self._asked, [len(text).to_bytes(4, "big")], [*streams, *pass_fds])
        self._asked.sendall(text)
        answer = self._asked.recv(4)
        if len(answer) < 4:
            raise OSError(f"the process that has imported the {self.KIND} has ended")
        self.pid = int.from_bytes(answer, "big")
        self._child_created = True
        self._close_pipe_fds(*pipes[:6])  # type: ignore[attr-defined]

    def _may_run_scripts(self, arguments: Sequence[str]) -> bool:
        running = {"verify", "forecast"} & {*arguments}
        return self.KIND == "torch" or bool(running and find_spec("torch"))

    def _internal_poll(self, *arguments: Any, **more: Any) -> int | None:
        if self._asked is None:
            return super()._internal_poll(*arguments, **more)  # type: ignore[misc,no-any-return]
        if self.returncode is None:
            pid, status = self._try_wait(os.WNOHANG)
            if pid:
                self._handle_exitstatus(status)  # type: ignore[attr-defined]
        return self.returncode

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        """What `waitpid` gives: nothing yet, or the process and its status."""
        if self._asked is None:
            return super()._try_wait(wait_flags)  # type: ignore[misc,no-any-return]
        try:
            answer = self._asked.recv(4, socket.MSG_DONTWAIT if wait_flags & os.WNOHANG else 0)
        except BlockingIOError:
            return 0, 0
        self._asked.close()
        return self.pid, int.from_bytes(answer, "big") if len(answer) == 4 else signal.SIGKILL


class LinterPopen(_Popen):
    """For `python -m gpulint …`."""

    KIND = "linter"


class TorchPopen(_Popen):
    """For scripts and modules that import torch."""

    KIND = "torch"


def run_linter(command: Sequence[Any], **options: Any) -> subprocess.CompletedProcess[Any]:
    """`subprocess.run` for `python -m gpulint …`."""
    return _run(LinterPopen, command, **options)


def verify(
    folder: Path, *arguments: str, status: int | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """`gpulint verify` in a folder, without a card, which must end with this status; what grows later is waited for one second,
    where nothing else is asked for."""
    waiting = () if "--reach" in arguments else ("--reach", "6")
    env = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", **environment}
    command = [sys.executable, "-m", "gpulint", "verify", *waiting, *arguments]
    done = run_linter(command, cwd=folder, env=env, capture_output=True, text=True, timeout=200)
    assert status is None or done.returncode == status, done
    return done


def run_torch(command: Sequence[Any], **options: Any) -> subprocess.CompletedProcess[Any]:
    """`subprocess.run` for scripts and modules that import torch."""
    return _run(TorchPopen, command, **options)


def command_line() -> list[str]:
    """What stands for `python -m gpulint` where others start it: a small process that waits for a fork."""
    if not POSSIBLE:
        return [sys.executable, "-m", "gpulint"]
    return [sys.executable, os.path.abspath(__file__), "gpulint", address_of("linter")]


def write_command(folder: Path) -> None:
    """Write a `gpulint` for shells into the folder."""
    command = folder / "gpulint"
    command.write_text(f'#!/bin/sh\nexec {shlex.join(command_line())} "$@"\n')
    command.chmod(0o755)


def start_scripts_warm(setattr: Callable[[Any, str, Any], None]) -> None:
    """The verifier of this process starts scripts this way; `setattr` as of pytest's `monkeypatch`."""
    warm = types.SimpleNamespace(**{**vars(subprocess), "Popen": TorchPopen})
    for starter in ("gpulint.runtime.parent.runner", "gpulint.forecasting.recorder"):
        setattr(import_module(starter), "subprocess", warm)


def start_spawned_warm() -> None:
    """What this process spawns by `multiprocessing` starts this way."""
    spawning = import_module("multiprocessing.popen_spawn_posix")
    start, poll = spawning.util.spawnv_passfds, spawning.Popen.poll

    def started(path: Any, arguments: Sequence[Any], descriptors: Sequence[int]) -> int:
        if arguments[-1] != SPAWNED:
            return int(start(path, arguments, descriptors))
        process = TorchPopen([os.fsdecode(one) for one in arguments], pass_fds=sorted(set(descriptors)))
        _spawned[process.pid] = process
        return process.pid

    def polled(self: Any, flag: int = os.WNOHANG) -> int | None:
        if self.pid not in _spawned:
            return poll(self, flag)  # type: ignore[no-any-return]
        process = _spawned[self.pid]
        self.returncode = process.poll() if flag & os.WNOHANG else process.wait()
        return self.returncode  # type: ignore[no-any-return]

    spawning.util.spawnv_passfds = started
    spawning.Popen.poll = polled


def _run(
    popen: type[subprocess.Popen[Any]], command: Sequence[Any], **options: Any
) -> subprocess.CompletedProcess[Any]:
    given, limit = options.pop("input", None), options.pop("timeout", None)
    check = options.pop("check", False)
    if given is not None:
        options["stdin"] = subprocess.PIPE
    if options.pop("capture_output", False):
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with popen(command, **options) as process:
        try:
            out, err = process.communicate(given, timeout=limit)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(command, process.returncode, out, err)
    if check:
        done.check_returncode()
    return done


# -- in the process ----------------------------------------------------------------------------------------------


class _Server:
    """Forks for each order, and tells who ordered how the fork ended."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._selector = selectors.DefaultSelector()
        self._selector.register(listening, selectors.EVENT_READ)
        self._selector.register(0, selectors.EVENT_READ)
        self._waiting: dict[
            int, tuple[int, socket.socket]
        ] = {}  # descriptor of a fork -> its id, who ordered

    def order(self) -> dict[str, Any]:
        """Comes back in the forks alone, each with what it is to do. Raises SystemExit once nobody is left to order."""
        while True:
            for key, _ in self._selector.select():
                if key.fd == 0:
                    sys.exit()
                if key.fileobj is not self._listening:
                    self._told(key.fd)
                elif (order := self._fork()) is not None:
                    return order

    def _fork(self) -> dict[str, Any] | None:
        asked, _ = self._listening.accept()
        head, descriptors, _, _ = socket.recv_fds(asked, 4, 16)
        text = bytearray()
        while len(text) < int.from_bytes(head, "big"):
            text += asked.recv(1 << 16)
        pid = os.fork()
        if pid == 0:
            self._leave(asked)
            order: dict[str, Any] = json.loads(text)
            _place(descriptors, [0, 1, 2, *order["descriptors"]])
            return order
        for given in descriptors:
            os.close(given)
        asked.sendall(pid.to_bytes(4, "big"))
        descriptor = os.pidfd_open(pid)
        self._waiting[descriptor] = pid, asked
        self._selector.register(descriptor, selectors.EVENT_READ)
        return None

    def _told(self, descriptor: int) -> None:
        pid, asked = self._waiting.pop(descriptor)
        self._selector.unregister(descriptor)
        os.close(descriptor)
        _, status = os.waitpid(pid, 0)
        with contextlib.suppress(OSError):  # nobody waits for it any more
            asked.sendall(status.to_bytes(4, "big"))
        asked.close()

    def _leave(self, asked: socket.socket) -> None:
        """In a fork: keep nothing of the server's."""
        for descriptor, (_, other) in self._waiting.items():
            os.close(descriptor)
            other.close()
        for one in (self._selector, self._listening, asked):
            one.close()


class _Unimported(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Hides a module that is there already until the program imports it."""

    def __init__(self, name: str) -> None:
        self._name, self._module = name, sys.modules.pop(name)
        self._spec = self._module.__spec__
        sys.meta_path.insert(0, self)

    def find_spec(
        self, fullname: str, path: Any, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        origin = self._module.__file__
        spec = importlib.machinery.ModuleSpec(fullname, self, origin=origin, is_package=True)
        spec.submodule_search_locations = list(self._module.__path__)
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        sys.meta_path.remove(self)  # now, and not when somebody asks whether there is such a module
        return self._module

    def exec_module(self, module: types.ModuleType) -> None:
        module.__spec__ = self._spec


def _place(given: list[int], numbers: list[int]) -> None:
    """Give descriptors the numbers that the program knows them by."""
    high = [fcntl.fcntl(one, fcntl.F_DUPFD, 200) for one in given]  # where none is in another's place
    for one in given:
        os.close(one)
    for one, number in zip(high, numbers, strict=True):
        os.dup2(one, number)
        os.close(one)


def _become(order: dict[str, Any]) -> None:
    """Makes this fork what the order says."""
    global _collecting
    _collecting = order["collects"]
    if order["new_session"]:
        os.setsid()
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["environment"])
    unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))
    for number, name, mode in ((0, "stdin", "rb"), (1, "stdout", "wb"), (2, "stderr", "wb")):
        stream = open(number, mode, 0 if unbuffered and number else -1, closefd=False)  # noqa: SIM115
        new = io.TextIOWrapper(
            stream,
            getattr(sys, name).encoding,
            "backslashreplace" if name == "stderr" else "strict",
            line_buffering=number == 2 or os.isatty(number),
            write_through=unbuffered,
        )
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)
    if order["collects"]:
        gc.unfreeze()  # what a collection costs is measured
    sys.orig_argv = order["arguments"]
    sys.argv = order["arguments"][1:]
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [path for path in paths if path and path not in sys.path]
    if os.environ.get(OVERLAY) in paths:
        sys.modules.pop("sitecustomize", None)
        import_module("sitecustomize")
    random.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.seed()
        _Unimported("torch")
    if order["torch"] is not None:
        _addresses["torch"] = order["torch"]
        start_scripts_warm(setattr)
        start_spawned_warm()
    if order["arguments"][1:3] == TORCHRUN:
        import_module(RANKS).Popen = TorchPopen


def _import_all(kind: str) -> None:
    """What forks of this kind may need: the whole linter, and torch with what watches scripts."""
    for name in TORCH if kind == "torch" else ():
        import_module(name)
    with contextlib.suppress(ImportError):
        import_module("pytest")  # scripts of ours run whole suites
    _import_package("gpulint", kind)


def _import_package(package: str, kind: str) -> None:
    """A package with all in it; where one cannot be imported, an optional one, the others."""
    for found in pkgutil.iter_modules(import_module(package).__path__, f"{package}."):
        if found.name in PROGRAMS or (kind != "torch" and NEEDS_TORCH.match(found.name)):
            continue
        with contextlib.suppress(ImportError):
            import_module(found.name)
            if found.ispkg:
                _import_package(found.name, kind)


def _await(kind: str, descriptor: int) -> None:
    """Returns in the forks, each ready for its program: `sys.argv` is what followed the interpreter."""
    del sys.path[0]
    _import_all(kind)
    import_module("gpulint.rules").all_rules()
    if kind == "torch":
        sys.modules["torch"].set_num_threads(1)
    gc.collect()
    gc.freeze()
    _become(_Server(socket.socket(fileno=descriptor)).order())


def _program() -> None:
    if sys.argv[0] == "-m":
        sys.argv.pop(0)
        sys.path.insert(0, os.getcwd())
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        return
    if sys.argv[0] == "-c":
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(sys.argv.pop(1), vars(main))
        return
    sys.path.insert(0, os.path.dirname(os.path.realpath(sys.argv[0])))
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.__file__ = os.path.abspath(sys.argv[0])
    with open(sys.argv[0], "rb") as text:
        exec(compile(text.read(), sys.argv[0], "exec"), vars(main))


def _status() -> int:
    """How the program ends, as the interpreter would have it."""
    try:
        _program()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except Exception:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        return 1
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "gpulint":
        _addresses["linter"] = sys.argv[2]
        sys.exit(LinterPopen([sys.executable, "-m", "gpulint", *sys.argv[3:]]).wait())
    _await(sys.argv[1], int(sys.argv[2]))
    _ended = _status()
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    # Taking down everything that was imported would copy most of the memory that forks share: seconds each time.
    os._exit(_ended & 0xFF)
