"""The part of `gpulint run` that lives in the user's interpreter: it samples memory and notes uncaught errors.

It is copied into a folder of its own under the name `sitecustomize.py`, which Python imports at start, so it is
standard library only, must work on every Python from 3.8, never imports torch, and never raises. What it finds
goes line by line into a file; nothing is printed.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.machinery
import importlib.util
import json
import os
import signal
import sys
import threading
import time
import traceback
from typing import Any

FOLDER = "GPULINT_RUN_FOLDER"
INTERVAL = "GPULINT_RUN_INTERVAL"
LIBRARY = "GPULINT_RUN_LIBRARY"
ASKED, ANSWER = "asked", "account.json"


class Recorder:
    """Samples in a thread of its own. Nothing is written before the program has torch."""

    def __init__(self, folder: str, interval: float) -> None:
        self.path = os.path.join(folder, f"{os.getpid()}.jsonl")
        self.asked = os.path.join(folder, f"{os.getpid()}.{ASKED}")
        self.interval = interval
        self.began = time.time()
        self.lines: list[str] = []
        self.lock = threading.Lock()
        self.stopping = threading.Event()
        self.alive = True
        self.introduced = False
        self.watching = False
        self.thread = threading.Thread(target=self.run, name="gpulint-run", daemon=True)

    def start(self) -> None:
        self.thread.start()
        atexit.register(self.finish)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.forget)
        self.hook_errors()

    def forget(self) -> None:
        # In a forked child the thread is gone and the file is the parent's.
        self.alive = False

    # -- the thread ------------------------------------------------------------------------------------------

    def run(self) -> None:
        # A signal that the program's own threads have blocked would be delivered here, and end the program.
        with contextlib.suppress(Exception):
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        flushed = sampled = time.time()
        while not self.stopping.wait(min(self.interval, 1.0)):
            with contextlib.suppress(
                Exception
            ):  # a program that is shutting down, a torch that is half imported
                self.answer()
                if time.time() - sampled < self.pause():
                    continue
                self.sample()
                sampled = time.time()
                if sampled - flushed > 1.0:
                    self.flush()
                    flushed = sampled

    def seconds(self) -> float:
        return round(time.time() - self.began, 3)

    def pause(self) -> float:
        # Long runs are sampled less often: some thousands of samples, however long it takes.
        return max(self.interval, (time.time() - self.began) / 2000.0)

    def sample(self) -> None:
        version = getattr(sys.modules.get("torch.version"), "__version__", None)
        if version is None:  # no torch, or one that is being imported
            return
        self.introduce(version)
        found = {"kind": "sample", "seconds": self.seconds(), "rss": resident()}
        self.note(**found, **(self.cuda_figures() or {}))

    def answer(self) -> None:
        """Somebody asks (`gpulint gpu account`, `gpulint gpu snapshot`): gpulint itself answers, from where it was started."""
        if not self.alive or not os.path.exists(self.asked):
            return
        with open(self.asked, encoding="utf-8") as file:
            request = file.read()
        os.unlink(self.asked)
        library = os.environ.get(LIBRARY, "")
        sys.path.append(library)
        try:
            from gpulint.memory.accounts.answering import answer
        finally:
            sys.path.remove(library)
        answer(self.asked.replace(ASKED, ANSWER), request)

    def cuda_figures(self) -> dict[str, Any] | None:
        # Through sys.modules: attributes of torch itself may import things.
        cuda = sys.modules.get("torch.cuda")
        memory = sys.modules.get("torch.cuda.memory")
        if cuda is None or memory is None or not getattr(cuda, "_initialized", False):
            return None
        if not self.watching:
            self.watching = True
            self.watch(cuda)
        names = {
            "allocated": "allocated_bytes.all.current",
            "reserved": "reserved_bytes.all.current",
            "active": "active_bytes.all.current",
            "inactive_split": "inactive_split_bytes.all.current",
            "peak": "allocated_bytes.all.peak",
            "retries": "num_alloc_retries",
            "ooms": "num_ooms",
        }
        total = dict.fromkeys(names, 0)
        for index in range(cuda.device_count()):
            stats = memory.memory_stats(index)
            for name, key in names.items():
                total[name] += stats.get(key, 0)
        return total

    def watch(self, cuda: Any) -> None:
        """Once, when CUDA has started: what it is, the settings in force, and a note at each OOM, caught or not."""
        binding: Any = sys.modules.get("torch._C")
        settings: dict[Any, Any] | None = None
        with contextlib.suppress(Exception):
            settings = binding._cuda_memorySnapshot(None).get("allocator_settings")
        self.note(
            kind="cuda",
            name=cuda.get_device_name(cuda.current_device()),
            version=getattr(sys.modules.get("torch.version"), "cuda", None),
            settings=None if settings is None else {str(k): str(v) for k, v in settings.items()},
        )
        attach = getattr(binding, "_cuda_attach_out_of_memory_observer", None)
        if attach is not None:
            attach(self.on_oom)

    def on_oom(self, device: int, alloc: int, device_alloc: int, device_free: int) -> None:
        with contextlib.suppress(Exception):
            self.note(kind="oom", seconds=self.seconds(), device=device, size=alloc)
            self.flush()

    # -- errors ----------------------------------------------------------------------------------------------

    def hook_errors(self) -> None:
        before = sys.excepthook

        def excepthook(kind: Any, error: Any, trace: Any) -> None:
            self.on_error(kind, error, trace)
            before(kind, error, trace)

        sys.excepthook = excepthook
        before_thread = threading.excepthook

        def thread_excepthook(arguments: Any) -> None:
            self.on_error(arguments.exc_type, arguments.exc_value, arguments.exc_traceback)
            before_thread(arguments)

        threading.excepthook = thread_excepthook

    def on_error(self, kind: Any, error: Any, trace: Any) -> None:
        with contextlib.suppress(Exception):
            text = "".join(traceback.format_exception(kind, error, trace))[-40000:]
            self.sample()
            if self.introduced:
                said = {"type": kind.__name__, "message": str(error)[:20000], "traceback": text}
                self.note(kind="error", seconds=self.seconds(), **said)
                self.flush()

    # -- the file --------------------------------------------------------------------------------------------

    def introduce(self, version: str) -> None:
        if self.introduced:
            return
        self.introduced = True
        self.note(
            kind="process",
            began=self.began,
            executable=sys.executable,
            python=".".join(map(str, sys.version_info[:3])),
            torch=str(version),
            rank=os.environ.get("RANK"),
            world=os.environ.get("WORLD_SIZE"),
        )

    def note(self, **record: Any) -> None:
        if self.alive:
            self.lines.append(json.dumps(record))

    def flush(self) -> None:
        if not self.alive:
            return
        with self.lock:
            lines, self.lines = self.lines, []
            if lines:
                with open(self.path, "a", encoding="utf-8") as file:
                    file.write("\n".join(lines) + "\n")

    def finish(self) -> None:
        if not self.alive:
            return
        self.stopping.set()
        with contextlib.suppress(Exception):
            self.sample()
            self.flush()


def resident() -> int | None:
    """Resident bytes of this process, None where the system does not tell."""
    with contextlib.suppress(Exception), open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return None


def run_the_real_one(folder: str) -> None:
    """The environment may have a sitecustomize of its own: it has to run as if this one were not there."""
    here = os.path.realpath(folder)
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry or os.curdir) != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def main() -> None:
    folder = os.environ.get(FOLDER)
    if not folder:
        return
    with contextlib.suppress(Exception):
        Recorder(folder, float(os.environ.get(INTERVAL, "0.2"))).start()
    run_the_real_one(folder)


if __name__ == "sitecustomize":
    main()
