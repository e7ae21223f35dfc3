"""Where the bytes are, on a real card: each state of a process accounted for, and what stays unexplained.

    python benchmarks/account_gpu.py [--out results.json] [--device cpu] [--only SECTION ...]

Each section runs in a process of its own with a time limit; what fails is recorded and the others run. Beside each account
lie the figures that it has to agree with: torch's own, the CUDA runtime's and NVML's, read in the same moment. With
`--device cpu` the same steps run without a card. Needs torch; nvidia-ml-py for NVML's figures, click and rich for `asked`.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

if sys.argv[1:3] == ["--section", "expandable"]:  # before torch reads them
    os.environ |= dict.fromkeys(("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"), "expandable_segments:True")

import torch
import torch.distributed as dist
from _parts import environment, gpulint, run_sections

from gpulint import memory

MIB = 1024**2
DEVICE = os.environ.get("BENCHMARK_DEVICE", "cuda")


def raw() -> dict[str, Any]:
    """What others say in this moment."""
    said: dict[str, Any] = {"nvml": nvml()}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        free, total = torch.cuda.mem_get_info()
        said |= {
            "runtime_used": total - free,
            "runtime_total": total,
            "allocated": torch.cuda.memory_allocated(),
            "reserved": torch.cuda.memory_reserved(),
        }
    return said


def nvml() -> Any:
    try:
        import pynvml

        pynvml.nvmlInit()
        cards = []
        for index in range(pynvml.nvmlDeviceGetCount()):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            first = pynvml.nvmlDeviceGetMemoryInfo(handle)
            second = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
            cards.append(
                {
                    "used_v1": first.used,
                    "used_v2": second.used,
                    "reserved_v2": second.reserved,
                    "total": first.total,
                    "processes": [
                        [entry.pid, entry.usedGpuMemory]
                        for entry in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
                    ],
                }
            )
        pynvml.nvmlShutdown()
        return cards
    except Exception as error:
        return f"{type(error).__name__}: {error}"


class Log:
    """The states of a section, in order. A state that fails is recorded, and the next one is tried."""

    def __init__(self) -> None:
        self.states: list[dict[str, Any]] = []
        self.kept: dict[str, Any] = {}  # what a state leaves for the next ones

    def state(self, name: str, step: Callable[[dict[str, Any]], Any] | None = None, **options: Any) -> None:
        from gpulint import memory

        entry: dict[str, Any] = {"state": name}
        self.states.append(entry)
        try:
            if step is not None:
                entry["step"] = step(self.kept)
            gc.collect()
            if torch.cuda.is_initialized():
                torch.cuda.synchronize()
            begin = time.perf_counter()
            account = memory.account(**options)
            entry["seconds"] = round(time.perf_counter() - begin, 4)
            entry["raw"] = raw()
            entry["account"] = account.to_json()
            entry["text"] = str(account)
            entry["adds_up"] = account.reserved == entry["raw"].get("reserved", 0)
        except Exception:
            entry["error"] = traceback.format_exc(limit=6)


# -- what a state does -------------------------------------------------------------------------------------------


def start(kept: dict[str, Any]) -> None:
    if DEVICE == "cuda":
        torch.cuda.init()
        torch.cuda.synchronize()


def tensors(kept: dict[str, Any]) -> None:
    kept["tensors"] = [
        torch.ones(100 * MIB // 4 + 7, device=DEVICE),
        *(torch.ones(n, device=DEVICE) for n in range(1, 400)),
    ]


def matmul(kept: dict[str, Any]) -> None:
    kept["model"] = torch.nn.Linear(1024, 1024, device=DEVICE)
    kept["loss"] = kept["model"](torch.ones(512, 1024, device=DEVICE)).sum()


def backward(kept: dict[str, Any]) -> None:
    kept["loss"].backward()


def activations(kept: dict[str, Any]) -> None:
    """Tensors of exactly a workspace's size that only a graph holds: they must not be told as workspaces."""
    x = torch.ones(2048, 4096, device=DEVICE, requires_grad=True)
    kept["graph"] = x.exp().exp().exp().sum()


def convolution(kept: dict[str, Any]) -> None:
    net = torch.nn.Conv2d(64, 64, 3, padding=1).to(DEVICE)
    net(torch.ones(16, 64, 64, 64, device=DEVICE)).sum().backward()


def half(kept: dict[str, Any]) -> None:
    a = torch.ones(1024, 1024, device=DEVICE, dtype=torch.bfloat16)
    torch.nn.functional.scaled_dot_product_attention(*(a.view(1, 8, 128, 1024)[..., :64],) * 3)
    _ = a @ a


def solver(kept: dict[str, Any]) -> None:
    torch.linalg.inv(torch.eye(512, device=DEVICE))
    torch.linalg.eigh(torch.eye(256, device=DEVICE))


def fourier(kept: dict[str, Any]) -> None:
    torch.fft.fft2(torch.ones(512, 512, device=DEVICE))


def sparse(kept: dict[str, Any]) -> None:
    torch.sparse.mm(torch.eye(256, device=DEVICE).to_sparse(), torch.ones(256, 256, device=DEVICE))


def cache(kept: dict[str, Any]) -> None:
    pieces = [torch.ones(3 * MIB // 4, device=DEVICE) for _ in range(40)]
    kept["pieces"] = pieces[::5]
    del pieces
    _ = torch.ones(300 * MIB // 4, device=DEVICE)


def graph(kept: dict[str, Any]) -> Any:
    if DEVICE != "cuda":
        return "needs a card"
    x = torch.ones(1024, 1024, device=DEVICE)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        y = (x * 2).sum(0) + x
    captured.replay()
    kept["captured"] = (captured, x, y)
    return None


def pinned(kept: dict[str, Any]) -> Any:
    if DEVICE != "cuda":
        return "needs a card"
    kept["pinned"] = torch.ones(64 * MIB // 4).pin_memory()
    return {key: value for key, value in torch.cuda.host_memory_stats().items() if key.endswith("current")}


def library(kept: dict[str, Any]) -> Any:
    """64 MiB that another library takes from the driver, unknown to torch."""
    if DEVICE != "cuda":
        return "needs a card"
    runtime = _runtime()
    pointer = ctypes.c_void_p()
    with memory.book("a library of mine"):
        status = runtime.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(64 * MIB))
    kept["pointer"] = pointer
    return {"cudaMalloc": status}


def _runtime() -> Any:
    with open("/proc/self/maps") as maps:
        for line in maps:
            if "libcudart" in line:
                return ctypes.CDLL(line.split()[-1])
    raise RuntimeError("no libcudart is loaded")


def clearing(kept: dict[str, Any]) -> Any:
    """The by-size figure against the measured one: clear() tells what dropping the workspaces freed."""
    before = memory.account()
    by_size = sum(entry.bytes for entry in before.inside if entry.name == "cuBLAS workspaces")
    cleared = memory.clear()
    return {
        "workspaces_by_size": by_size,
        "workspaces_dropped": cleared.workspaces,
        "returned": cleared.returned,
    }


# -- sections ----------------------------------------------------------------------------------------------------


def states() -> dict[str, Any]:
    """From the context on, one library after the other, in a process that booked its start."""
    log, before = Log(), raw()
    try:
        with memory.book("CUDA context"):
            start({})
    except Exception:
        log.states.append({"state": "booking", "error": traceback.format_exc()})
    log.state("context")
    for name, step in (
        ("tensors", tensors),
        ("matmul, forward", matmul),
        ("matmul, backward", backward),
        ("activations of a workspace's size", activations),
        ("convolution", convolution),
        ("bf16 matmul and attention", half),
        ("solver", solver),
        ("FFT", fourier),
        ("sparse", sparse),
        ("cache", cache),
        ("graph pool", graph),
        ("pinned", pinned),
        ("64 MiB past torch", library),
        ("cleared", clearing),
    ):
        log.state(name, step)
    return {"before": before, "states": log.states}


def plain() -> dict[str, Any]:
    """A process that booked nothing, as most are; then with the context measured beside it."""
    log = Log()
    start({})
    log.state("nothing booked", tensors)
    log.state("context measured in a process of its own", measure_context=True)
    return {"states": log.states}


def expandable() -> dict[str, Any]:
    """The same sums with expandable segments."""
    return states()


def neighbour() -> dict[str, Any]:
    """A second process takes 1 GiB of the same card after this one has started."""
    log = Log()
    with memory.book("CUDA context"):
        start({})
    log.state("alone", tensors)
    code = f"import torch, sys; x = torch.ones(256 * 1024**2, device={DEVICE!r}); print('up', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        log.state(f"beside process {other.pid}")
        other.kill()
    log.state("alone again")
    return {"states": log.states}


WORKER = """
import sys, torch
x = torch.ones(50 * 1024**2, device={device!r}); y = x[:1024**2].view(1024, 1024) @ x[:1024**2].view(1024, 1024)
print("up", flush=True)
import time
for _ in range(1200):
    time.sleep(0.05)
"""


def asked() -> dict[str, Any]:
    """`gpulint gpu account PID` from outside: of a program under `gpulint run`, and of one that is not."""
    code = WORKER.format(device=DEVICE)
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "work.py")
        script.write_text(code)
        for name, command in (
            ("gpulint run", ["-m", "gpulint", "run", "-q", "--", sys.executable, str(script)]),
            ("plain", [str(script)]),
        ):
            with subprocess.Popen(
                [sys.executable, *command],
                stdout=subprocess.PIPE,
                text=True,
                env=environment(),
                start_new_session=True,
            ) as process:
                try:
                    assert process.stdout is not None
                    process.stdout.readline()
                    pid = _python_of(process.pid, str(script))
                    options = ("", "--measure-context", "--json")
                    found[name] = {option: _account(*option.split(), str(pid)) for option in options}
                except Exception:
                    found[name] = traceback.format_exc()
                finally:
                    with contextlib.suppress(OSError):
                        os.killpg(process.pid, 15)
    return found


def _python_of(start: int, script: str) -> int:
    """The process that runs the script: the one started, or its child under the launcher."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().decode().split("\0")
                if words[1:2] == [script]:
                    return int(entry.name)
    return start


def _account(*words: str) -> dict[str, Any]:
    begin = time.perf_counter()
    done = gpulint("gpu", "account", *words, limit=100)
    seconds = round(time.perf_counter() - begin, 2)
    out, err = done.stdout[-6000:], done.stderr[-2000:]
    return {"status": done.returncode, "out": out, "err": err, "seconds": seconds}


def nccl() -> dict[str, Any]:
    """A rank for each card (at most two): what NCCL takes when it begins, and at its first exchange."""
    world = min(2, max(1, torch.cuda.device_count())) if DEVICE == "cuda" else 2
    with tempfile.TemporaryDirectory() as folder:
        ranks = [
            subprocess.Popen(
                [sys.executable, __file__, "rank", str(rank), str(world), f"{folder}/{rank}"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                env={**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29611"},
            )
            for rank in range(world)
        ]
        errors = [process.communicate(timeout=100)[1][-2000:] for process in ranks]
        told = [Path(folder, str(rank)) for rank in range(world)]
        found = [
            json.loads(path.read_text()) if path.exists() else {"error": error}
            for path, error in zip(told, errors, strict=True)
        ]
        return {"world": world, "ranks": found}


def one_rank(rank: int, world: int, result: Path) -> None:
    log = Log()
    with memory.book("CUDA context"):
        if DEVICE == "cuda":
            torch.cuda.set_device(rank)
        start({})
    log.state("context")

    def begin(kept: dict[str, Any]) -> None:
        with memory.book("NCCL"):
            dist.init_process_group("nccl" if DEVICE == "cuda" else "gloo", rank=rank, world_size=world)
            kept["x"] = torch.ones(1024, device=DEVICE)
            dist.all_reduce(kept["x"])
            dist.barrier()

    log.state("process group and first all_reduce", begin)

    def large(kept: dict[str, Any]) -> None:
        with memory.book("NCCL"):
            y = torch.ones(64 * MIB // 4, device=DEVICE)
            dist.all_reduce(y)
            dist.all_gather([torch.empty_like(y) for _ in range(world)], y)

    log.state("large exchanges", large)

    def wrapped(kept: dict[str, Any]) -> None:
        net = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(8))).to(DEVICE)
        kept["ddp"] = torch.nn.parallel.DistributedDataParallel(net)
        kept["ddp"](torch.ones(64, 1024, device=DEVICE)).sum().backward()

    log.state("DDP of 32 MiB", wrapped)
    result.write_text(json.dumps({"rank": rank, "states": log.states}))
    dist.destroy_process_group()


SECTIONS = {one.__name__: one for one in (states, plain, expandable, neighbour, asked, nccl)}


if __name__ == "__main__":
    if sys.argv[1:2] == ["rank"]:
        one_rank(int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
        sys.exit()
    sys.exit(run_sections("account", __file__, __doc__, SECTIONS, 100))
