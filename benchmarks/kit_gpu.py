"""The memory kit on a GPU: what the helpers that people write by hand free, and what the kit frees.

    python benchmarks/kit_gpu.py [--out FOLDER] [--only SECTION ...] [--list]

Each section runs in a process of its own and gives a dict; all of them go to `kit-<gpu>-<date>.json`. Without CUDA
the sections that need it are reported as skipped, the others run. Needs torch; click and nvidia-ml-py are used
where they are installed.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
MIB = 1024**2
STEPS = 200
SECTIONS: dict[str, tuple[str, bool, Callable[[], dict[str, Any]]]] = {}


def section(
    rows: str, cuda: bool = True
) -> Callable[[Callable[[], dict[str, Any]]], Callable[[], dict[str, Any]]]:
    """Register a section for these helpers; `cuda` says that it needs a device."""

    def register(function: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
        SECTIONS[function.__name__] = (rows, cuda, function)
        return function

    return register


def device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def allocated() -> int:
    import torch

    return torch.cuda.memory_allocated()


def trained(width: int = 2048, layers: int = 8) -> tuple[Any, Any, Any]:
    """A model, its Adam after one step, and a batch."""
    import torch

    model = torch.nn.Sequential(*(torch.nn.Linear(width, width) for _ in range(layers))).to(device())
    optimizer = torch.optim.Adam(model.parameters())
    batch = torch.randn(256, width, device=device())
    model(batch).square().mean().backward()
    optimizer.step()
    return model, optimizer, batch


# -- clearing, figures -------------------------------------------------------------------------------------------


@section("A1 B1 C6 D1")
def clear() -> dict[str, Any]:
    """`gc.collect(); empty_cache()` by hand against memory.clear(): what is still reserved afterwards."""
    import torch

    from gpulint import memory

    def phase() -> None:
        model, optimizer, batch = trained()
        del model, optimizer, batch

    phase()
    before = torch.cuda.memory_reserved(), allocated()
    gc.collect()
    torch.cuda.empty_cache()
    old = torch.cuda.memory_reserved(), allocated()
    phase()
    cleared = memory.clear()
    began = time.perf_counter()
    memory.clear()
    held = [torch.zeros(32 * MIB, dtype=torch.uint8, device="cuda")]
    forced = memory.clear(force=True)
    named = [str(found) for found in forced.lingering]
    del held
    return {
        "before": {"reserved": before[0], "allocated": before[1]},
        "old": {"reserved": old[0], "allocated": old[1]},
        "new": {
            "reserved": cleared.reserved,
            "allocated": cleared.allocated,
            "workspaces": cleared.workspaces,
        },
        "seconds": time.perf_counter() - began,
        "force_names": named,
        "force_names_the_list": any("`held`" in text for text in named),
    }


@section("A2 B2 C1 C4")
def stats() -> dict[str, Any]:
    """The figures against torch's own, and what reading them costs."""
    import torch

    from gpulint import memory

    kept = trained()
    figures = memory.stats()
    begin = time.perf_counter()
    for _ in range(200):
        memory.stats()
    full = (time.perf_counter() - begin) / 200
    begin = time.perf_counter()
    for _ in range(200):
        memory.stats(blocks=False)
    light = (time.perf_counter() - begin) / 200
    del kept
    return {
        "figures": figures.to_json(),
        "agrees": figures.allocated == figures.to_json()["allocated"] > 0
        and figures.peak_allocated == torch.cuda.max_memory_allocated(),
        "microseconds": {"with blocks": full * 1e6, "without": light * 1e6},
        "line": figures.summary(),
    }


# -- moving, releasing, saving -------------------------------------------------------------------------------------


@section("A3")
def to_cpu() -> dict[str, Any]:
    """`t.cpu()` keeps the graph on the GPU; memory.to_cpu lets go."""
    import torch

    from gpulint import memory

    model, optimizer, batch = trained()
    model.requires_grad_(True)
    base = allocated()

    def kept(move: Callable[[Any], Any]) -> int:
        outputs = []
        for _ in range(4):
            outputs.append(move({"output": [model(batch)]}))
        torch.cuda.synchronize()
        return allocated() - base

    old = kept(lambda found: {"output": [found["output"][0].cpu()]})
    gc.collect()
    new = kept(memory.to_cpu)
    del optimizer
    return {"old_held": old, "new_held": new}


@section("A4")
def release() -> dict[str, Any]:
    """`del model` in a helper against memory.release: both called by somebody who still holds the model."""
    import torch

    from gpulint import memory

    def cleanup_model_memory(model: Any) -> None:
        del model
        gc.collect()
        torch.cuda.empty_cache()

    model, optimizer, batch = trained()
    before = allocated()
    cleanup_model_memory(model)
    old = before - allocated()
    released = memory.release(model, optimizer)
    new = before - allocated()
    memory.restore(model, optimizer, "cuda")
    model(batch).square().mean().backward()
    optimizer.step()
    kept = allocated()
    dropped = memory.release(model, optimizer, keep=False)
    return {
        "held_before": before,
        "old_freed": old,
        "new_freed": new,
        "text": str(released),
        "trains_after_restore": True,
        "keep_false_freed": kept - allocated(),
        "keep_false_text": str(dropped),
    }


@section("A6")
def save_checkpoint() -> dict[str, Any]:
    """The spike of a copy on the device, of moving the model to the CPU and back, and of memory.save_checkpoint."""
    import torch

    from gpulint import memory

    model, optimizer, _ = trained(4096, 8)
    folder = tempfile.mkdtemp()

    def measured(save: Callable[[], Any]) -> dict[str, Any]:
        torch.cuda.synchronize()
        with memory.monitor("save", level=None, synchronize=True) as window:
            save()
        return {"rise": window.rise, "seconds": window.seconds}

    def copied() -> None:
        state = {name: value.clone() for name, value in model.state_dict().items()}
        torch.save(state, f"{folder}/old.pt")

    def moved() -> None:
        model.cpu()
        torch.save(model.state_dict(), f"{folder}/old.pt")
        model.cuda()

    result = {
        "clone_on_the_device": measured(copied),
        "to_the_cpu_and_back": measured(moved),
        "save_checkpoint": measured(lambda: memory.save_checkpoint(model, f"{folder}/new.pt")),
        "with_optimizer": measured(
            lambda: memory.save_checkpoint({"model": model, "optimizer": optimizer}, f"{folder}/both.pt")
        ),
    }
    loaded = torch.load(f"{folder}/new.pt")
    return {**result, "loads_on": sorted({str(value.device) for value in loaded.values()})}


# -- watching ------------------------------------------------------------------------------------------------------


@section("A5 B3 B6 E2 E5")
def monitor() -> dict[str, Any]:
    """Nested windows, and what an installed Monitor costs a step."""
    import torch

    from gpulint import memory

    with memory.monitor("outer", level=None) as outer:
        torch.zeros(300 * MIB, dtype=torch.uint8, device="cuda")
        with memory.monitor("inner", level=None) as inner:
            torch.zeros(100 * MIB, dtype=torch.uint8, device="cuda")

    model, optimizer, batch = trained(512, 16)

    def steps(number: int) -> float:
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(number):
            optimizer.zero_grad()
            model(batch[:, :512]).square().mean().backward()
            optimizer.step()
        torch.cuda.synchronize()
        return (time.perf_counter() - begin) / number

    steps(STEPS // 4)
    plain = min(steps(STEPS) for _ in range(3))
    run = memory.Monitor.install(Path(tempfile.mkdtemp()) / "m.jsonl", every=100)
    watched = min(steps(STEPS) for _ in range(3))
    run.end()
    return {
        "outer_rise": outer.rise,
        "inner_rise": inner.rise,
        "step_milliseconds": {"plain": plain * 1e3, "with Monitor every 100": watched * 1e3},
        "milestones": [milestone.name for milestone in run.milestones],
        "line": run._line(run.milestones[1], run.milestones[0]),
    }


# -- running out ---------------------------------------------------------------------------------------------------


@section("B5 A9 C5")
def oom_guard() -> dict[str, Any]:
    """Recovery inside `except` against oom_guard; retry by halving; the diagnosis of real messages."""
    import torch

    from gpulint import memory

    torch.zeros(1, device="cuda")
    total = torch.cuda.get_device_properties(0).total_memory
    memory.limit(min(1.0, 6 * 1024**3 / total))

    def step(batch_size: int) -> int:
        layers = []
        for _ in range(8):
            layers.append(torch.zeros(batch_size * 16 * MIB, dtype=torch.uint8, device="cuda"))
        return sum(layer.numel() for layer in layers) // (8 * 16 * MIB)

    memory.clear()
    inside = None
    try:
        step(64)
    except torch.OutOfMemoryError:
        gc.collect()
        torch.cuda.empty_cache()
        inside = allocated()
    after_except = allocated()
    guard = memory.oom_guard(retry="halve", snapshot=Path(tempfile.mkdtemp()) / "oom.pickle")
    fitted = guard.run(step, 64)
    assert guard.last is not None
    last = guard.last
    reraised = memory.oom_guard()
    try:
        reraised.run(step, 64)
    except torch.OutOfMemoryError:
        held_by_reraised = allocated()
    return {
        "limit": (6 * 1024**3),
        "old_inside_except_held": inside,
        "after_except_held": after_except,
        "guard": {
            "sizes_tried": len(guard.events) + 1,
            "fitted_batch": fitted,
            "held_after": last.cleared.allocated,
            "kind": last.diagnosis.kind,
            "snapshot_bytes": os.path.getsize(last.snapshot) if last.snapshot else 0,
            "lines": last.lines(),
        },
        "reraised_error_held_in_handler": held_by_reraised,
        "fragmentation": fragmented_oom(),
    }


def fragmented_oom() -> dict[str, Any]:
    """An OOM although free and cached memory together would do; what the diagnosis says of the real message."""
    import torch

    from gpulint import memory
    from gpulint.memory.oom.diagnosis import diagnose
    from gpulint.memory.oom.messages import parse_message

    memory.clear()
    small = 4 * MIB
    tensors = []
    try:
        while True:
            tensors.append(torch.empty(small, dtype=torch.uint8, device="cuda"))
    except torch.OutOfMemoryError:
        pass
    tensors = tensors[1::2]
    try:
        torch.empty(1024 * MIB, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError as error:
        text = str(error)
    figures = memory.stats()
    message = parse_message(text)
    assert message is not None
    made = diagnose(message)
    del tensors
    memory.clear()
    return {
        "message": text,
        "kind": made.kind,
        "arithmetic": list(made.arithmetic),
        "parsed_allocated": message.allocated,
        "allocator_allocated": figures.allocated,
        "fragmentation": figures.fragmentation,
    }


# -- settings ------------------------------------------------------------------------------------------------------


@section("A8 E3 C3")
def configure() -> dict[str, Any]:
    """Settings read back from torch in fresh processes, and the clear error when it is too late."""
    codes = {
        "expandable": "made = memory.configure(expandable_segments=True, strict=True)",
        "before_import_torch": "assert 'torch' not in __import__('sys').modules; "
        "made = memory.configure(expandable_segments=True, strict=True)",
        "after_import_torch": "import torch; made = memory.configure(expandable_segments=True, strict=True)",
        "several": "made = memory.configure(expandable_segments=True, garbage_collection_threshold=0.8)",
        "max_split": "made = memory.configure(max_split_size_mb=128)",
        "divisions": "made = memory.configure(roundup_power2_divisions={256: 1, 512: 2, '>': 4})",
        "too_late": "import torch; torch.zeros(1, device='cuda'); made = memory.configure(expandable_segments=True)",
    }
    tail = (
        "; import torch; started = torch.cuda.is_initialized(); torch.zeros(1, device='cuda');"
        " import json; print(json.dumps({'text': str(made), 'checked': made.checked, 'refused': made.refused,"
        " 'cuda_started_by_configure': started, 'settings': {k: str(v) for k, v in"
        " torch.cuda.memory._snapshot().get('allocator_settings', {}).items()}}))"
    )
    found: dict[str, Any] = {}
    for name, code in codes.items():
        done = subprocess.run(
            [sys.executable, "-c", f"from gpulint import memory; {code}{tail}"],
            capture_output=True,
            text=True,
            cwd=ROOT,
            timeout=200,
        )
        lines = done.stdout.strip().splitlines()
        if done.returncode == 0 and lines:
            found[name] = {**json.loads(lines[-1]), "stderr": done.stderr.strip()[-400:]}
        else:
            found[name] = {"error": (done.stderr.strip().splitlines() or ["no output"])[-1]}
    return found


@section("C2 C3 E3", cuda=False)
def fragmentation() -> dict[str, Any]:
    """The experiment on the GPU under each setting in fresh processes, beside the allocator model."""
    from gpulint.operator import experiment
    from gpulint.operator.scenarios import SETTINGS, standard

    gpu = device() == "cuda"
    rows = []
    for scenario in standard():
        for setting in SETTINGS:
            model = experiment.in_model(scenario, setting)
            row: dict[str, Any] = {
                "scenario": scenario.name,
                "setting": setting or "default",
                "model": short(model),
            }
            if gpu:
                real = experiment.on_gpu(scenario, setting)
                row["gpu"] = {"error": real.error} if real.error else short(real)
                row["same_outcome"] = real.succeeded == model.succeeded
            rows.append(row)
    return {"rows": rows}


def short(outcome: Any) -> dict[str, Any]:
    return {
        name: getattr(outcome, name)
        for name in ("succeeded", "peak_allocated", "peak_reserved", "largest_free", "retries")
    }


# -- commands ------------------------------------------------------------------------------------------------------


LOOP = """
import random, torch, time
chance = random.Random(0)
place = "cuda" if torch.cuda.is_available() else "cpu"
model = torch.nn.Sequential(torch.nn.Embedding(8000, 256), torch.nn.Linear(256, 256), torch.nn.Linear(256, 8000))
model = model.to(place)
optimizer = torch.optim.AdamW(model.parameters())
for step in range(STEPS):
    batch = torch.randint(8000, (8, chance.randint(16, 256)), device=place)
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(batch).flatten(0, 1), batch.flatten()).backward()
    optimizer.step()
END
"""


@section("A7 E3", cuda=False)
def run() -> dict[str, Any]:
    """`gpulint run`: settings, timeline, an OOM explained, TERM passed through."""
    from gpulint.operator import launcher, timeline

    gpu = device() == "cuda"
    steps = "150" if gpu else "10"
    plain = LOOP.replace("STEPS", steps).replace("END", "")
    version = launcher.torch_version_of(sys.executable)
    found: dict[str, Any] = {}
    for name, wanted in (
        ("default", None),
        ("auto", "auto"),
        ("expandable and max_split 128", "expandable_segments:True,max_split_size_mb:128"),
    ):
        allocator = launcher.allocator_environment(wanted, version, os.environ) if wanted else None
        ended = launcher.launch([sys.executable, "-c", plain], allocator, 0.02)
        processes = timeline.read_notes(ended.folder)
        result = timeline.to_result([sys.executable], ended, processes)
        samples = result.ranks[0].samples if result.ranks else ()
        found[name] = {
            "code": ended.code,
            "variable": f"{ended.variable}={ended.value}" if ended.variable else None,
            "settings_read_back": result.ranks[0].environment.allocator if result.ranks else None,
            "samples": len(samples),
            "peak_reserved": max((s.reserved or 0 for s in samples), default=0),
            "peak_allocated": max((s.peak or 0 for s in samples), default=0),
            "lines": timeline.summary(ended, processes, None),
        }
    oom = "torch.empty(1 << 45, dtype=torch.uint8, device=place)"
    ended = launcher.launch(
        [sys.executable, "-c", LOOP.replace("STEPS", "3").replace("END", oom)], None, 0.02
    )
    found["oom"] = {
        "code": ended.code,
        "lines": timeline.summary(ended, timeline.read_notes(ended.folder), None),
    }
    return {**found, "terminate": terminated()}


def terminated() -> dict[str, Any]:
    """TERM to the launcher: the program ends, with its memory, and the status says TERM."""
    code = (
        "import sys; from gpulint.operator import launcher;"
        "sys.exit(launcher.leave_as(launcher.launch(sys.argv[1:], None)))"
    )
    waiting = LOOP.replace("STEPS", "2").replace("END", "print('up', flush=True); time.sleep(60)")
    process = subprocess.Popen(
        [sys.executable, "-c", code, sys.executable, "-c", waiting],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    try:
        status = process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        status = process.wait()
    return {"status": status, "right": status == -signal.SIGTERM}


@section("A7 B4")
def gpu() -> dict[str, Any]:
    """Cards and processes through NVML, and ending a process of one's own."""
    import torch

    from gpulint.operator import gpu as cards
    from gpulint.operator import processes

    holding = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import torch, time; x = torch.zeros(1 << 30, dtype=torch.uint8, device='cuda');"
            "print('up', flush=True); time.sleep(120)",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holding.stdout is not None
    holding.stdout.readline()
    free_before = torch.cuda.mem_get_info()[0]
    found: dict[str, Any] = {"opens_gpu": processes.opens_gpu(holding.pid)}
    try:
        with cards.driver() as nvml:
            listed = cards.read_cards(nvml)
        found["cards"] = [card.to_json() for card in listed]
        found["lists_the_process"] = any(t.pid == holding.pid for card in listed for t in card.tenants)
    except cards.NoDriver as missing:
        listed = None
        found["nvml"] = str(missing)
    allowed, refused = cards.candidates([holding.pid, 1], listed)
    found["refused"] = [f"{refusal.pid}: {refusal.reason}" for refusal in refused]
    if allowed:
        found["ended"] = processes.end(allowed[0], 10.0)
    else:
        holding.kill()
    holding.wait(30)
    time.sleep(1)
    found["freed_by_ending_it"] = torch.cuda.mem_get_info()[0] - free_before
    return found


# -- running the sections ------------------------------------------------------------------------------------------


def run_section(name: str) -> dict[str, Any]:
    """One section in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "result.json")
        begin = time.perf_counter()
        done = subprocess.run(
            [sys.executable, __file__, "--section", name, "--result", str(target)],
            capture_output=True,
            text=True,
            timeout=580,
        )
        seconds = time.perf_counter() - begin
        if not target.exists():
            return {
                "error": done.stderr.strip()[-3000:] or f"exit status {done.returncode}",
                "seconds": seconds,
            }
        return {**json.loads(target.read_text()), "seconds_taken": round(seconds, 2)}


def one(name: str, target: Path) -> None:
    _, needs_cuda, function = SECTIONS[name]
    if needs_cuda and device() != "cuda":
        target.write_text(json.dumps({"skipped": "needs a CUDA device"}))
        return
    target.write_text(json.dumps(function(), default=str))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    parser.add_argument("--only", nargs="+", choices=sorted(SECTIONS))
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--section", help=argparse.SUPPRESS)
    parser.add_argument("--result", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.section:
        one(given.section, given.result)
        return 0
    if given.list:
        for name, (rows, _, function) in SECTIONS.items():
            print(f"{name:<16} {rows:<12} {(function.__doc__ or '').splitlines()[0]}")
        return 0
    import torch

    card = torch.cuda.get_device_name(0) if torch.cuda.is_available() else "cpu"
    results: dict[str, Any] = {
        "about": {
            "card": card,
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "python": platform.python_version(),
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        }
    }
    failed = 0
    for name in given.only or SECTIONS:
        found = {"rows": SECTIONS[name][0], **run_section(name)}
        results[name] = found
        state = found.get("skipped") or ("FAILED: " + found["error"][-300:] if "error" in found else "done")
        failed += "error" in found
        print(f"{name:<16} {state}", flush=True)
    given.out.mkdir(parents=True, exist_ok=True)
    slug = re.sub(r"[^a-z0-9]+", "-", card.lower()).strip("-")
    target = given.out / f"kit-{slug}-{datetime.date.today().isoformat()}.json"
    target.write_text(json.dumps(results, indent=1) + "\n")
    print(target)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
