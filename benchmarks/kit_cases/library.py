"""Sections about gpulint.memory: what the helpers that people write by hand free, and what the kit frees."""

from __future__ import annotations

import gc
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from gpulint import memory
from kit_cases import MIB, STEPS, allocated, python, section, trained

# -- clearing, figures -------------------------------------------------------------------------------------------


@section("A1 B1 C6 D1")
def clear() -> dict[str, Any]:
    """`gc.collect(); empty_cache()` by hand against memory.clear(): what is still reserved afterwards."""

    def phase() -> None:
        model, optimizer, batch = trained()
        del model, optimizer, batch

    def figures() -> dict[str, int]:
        return {"reserved": torch.cuda.memory_reserved(), "allocated": allocated()}

    phase()
    before = figures()
    gc.collect()
    torch.cuda.empty_cache()
    old = figures()
    phase()
    cleared = memory.clear()
    began = time.perf_counter()
    memory.clear()
    held = [torch.zeros(32 * MIB, dtype=torch.uint8, device="cuda")]
    forced = memory.clear(force=True)
    named = [str(found) for found in forced.lingering]
    del held
    return {
        "before": before,
        "old": old,
        "new": {name: getattr(cleared, name) for name in ("reserved", "allocated", "workspaces")},
        "seconds": time.perf_counter() - began,
        "force_names": named,
        "force_names_the_list": any("`held`" in text for text in named),
    }


@section("A2 B2 C1 C4")
def stats() -> dict[str, Any]:
    """The figures against torch's own, and what reading them costs."""
    kept = trained()
    figures = memory.stats()

    def microseconds(blocks: bool) -> float:
        begin = time.perf_counter()
        for _ in range(200):
            memory.stats(blocks=blocks)
        return (time.perf_counter() - begin) / 200 * 1e6

    costs = {"with blocks": microseconds(True), "without": microseconds(False)}
    del kept
    return {
        "figures": figures.to_json(),
        "agrees": figures.allocated == figures.to_json()["allocated"] > 0
        and figures.peak_allocated == torch.cuda.max_memory_allocated(),
        "microseconds": costs,
        "line": figures.summary(),
    }


# -- moving, releasing, saving -------------------------------------------------------------------------------------


@section("A3")
def to_cpu() -> dict[str, Any]:
    """`t.cpu()` keeps the graph on the GPU; memory.to_cpu lets go."""
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
        # The outer window opens before CUDA has started.
        "outer_rise": outer.rise,
        "inner_rise": inner.rise,
        "each_keeps_its_peak": (outer.rise, inner.rise) == (300 * MIB, 100 * MIB),
        "step_milliseconds": {"plain": plain * 1e3, "with Monitor every 100": watched * 1e3},
        "milestones": [milestone.name for milestone in run.milestones],
        "line": run._line(run.milestones[1], run.milestones[0]),
    }


# -- running out ---------------------------------------------------------------------------------------------------


@section("B5 A9 C5")
def oom_guard() -> dict[str, Any]:
    """Recovery inside `except` against oom_guard; retry by halving; the diagnosis of real messages."""
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
    from gpulint.memory.oom import diagnose
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


@section("B5 A9 C5")
def other_backend() -> dict[str, Any]:
    """An error of another allocator backend, whose message lacks figures: the diagnosis has them all the same."""
    code = (
        "import json, torch; from gpulint import memory;"
        "torch.zeros(1, device='cuda'); total = torch.cuda.get_device_properties(0).total_memory;"
        "memory.limit(min(1.0, 4 * 1024**3 / total)); guard = memory.oom_guard(reraise=False);"
        "guard.run(lambda: [torch.zeros(1 << 30, dtype=torch.uint8, device='cuda') for _ in range(8)]);"
        "last = guard.last; print(json.dumps(None if last is None else"
        " {'kind': last.diagnosis.kind, 'lines': last.lines(), 'held_after': last.cleared.allocated}))"
    )
    done = python("-c", code, PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync")
    lines = done.stdout.strip().splitlines()
    return {"outcome": json.loads(lines[-1]) if lines else None, "stderr": done.stderr[-2000:]}


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
        done = python("-c", f"from gpulint import memory; {code}{tail}")
        lines = done.stdout.strip().splitlines()
        if done.returncode == 0 and lines:
            found[name] = {**json.loads(lines[-1]), "stderr": done.stderr.strip()[-400:]}
        else:
            found[name] = {"error": (done.stderr.strip().splitlines() or ["no output"])[-1]}
    return found
