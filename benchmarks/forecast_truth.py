"""Runs the workloads of `forecast_workloads/` on a GPU and writes down what they really took: the truth for `forecast.py`.

    python benchmarks/forecast_truth.py OUT.json [--only NAME ...] [--sealed] [--traces FOLDER]

Each run is a forked process of its own, so that the libraries are imported once. Figures are bytes: peak allocated and
reserved as torch counts them, and what the driver says that the process took (card in use at the end, less before).
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import multiprocessing
import os
import runpy
import sys
import time
import traceback
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
WORKLOADS = HERE / "forecast_workloads"

# batch sizes measured while the forecast is developed, and those that are measured once a forecast is written down
OPEN = {
    "mlp": (256, 1024),
    "resnet50_amp": (32, 64),
    "gpt2_fp32": (2, 4),
    "gpt2_bf16": (4, 8),
    "llama_1b": (1, 2),
    "bert_lengths": (8, 16),
    "lstm": (20, 64),
    "train_eval_save": (128, 256),
}
SEALED = {
    "mlp": (4096,),
    "resnet50_amp": (128,),
    "gpt2_fp32": (8,),
    "gpt2_bf16": (16,),
    "llama_1b": (8,),
    "bert_lengths": (32,),
    "lstm": (128,),
    "train_eval_save": (1024,),
    "vit_b": (8, 32, 96),
    "unet_diffusion": (4, 16, 32),
    "t5": (4, 8, 16),
    "lora_1b": (1, 2, 4),
}


def warm() -> None:
    """Import what the workloads import; nothing here may start CUDA, which does not survive a fork."""
    import peft  # noqa: F401
    import timm  # noqa: F401
    import torchvision  # noqa: F401
    from transformers import (  # noqa: F401
        BertForSequenceClassification,
        GPT2LMHeadModel,
        LlamaForCausalLM,
        T5ForConditionalGeneration,
    )


def measured(name: str, batch: int, traces: str | None) -> dict[str, Any]:
    """Run one workload in this process."""
    import torch

    began = time.time()
    free, total = torch.cuda.mem_get_info()
    context = total - free
    if traces:
        torch.cuda.memory._record_memory_history(stacks="python", max_entries=2_000_000)
    path = WORKLOADS / f"{name}.py"
    sys.argv = [str(path), "--batch", str(batch)]
    error = ""
    try:
        runpy.run_path(str(path), run_name="__main__")
    except BaseException:
        error = traceback.format_exc()[-800:]
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    stats = torch.cuda.memory_stats()
    if traces:
        write_trace(Path(traces) / f"{name}-{batch}.json.gz")
    return {
        "peak_allocated": stats["allocated_bytes.all.peak"],
        "peak_reserved": stats["reserved_bytes.all.peak"],
        "reserved_at_end": stats["reserved_bytes.all.current"],
        "retries": stats["num_alloc_retries"],
        "used_before": context,
        "used_at_end": total - free,
        "seconds": round(time.time() - began, 1),
        "error": error,
    }


def write_trace(path: Path) -> None:
    """The allocations and frees in order: [a, size, where] and [f, index of the allocation]."""
    import torch

    trace = torch.cuda.memory._snapshot()["device_traces"][0]
    places: dict[str, int] = {}
    known: dict[int, int] = {}
    events: list[list[Any]] = []
    for entry in trace:
        if entry["action"] == "alloc":
            known[entry["addr"]] = len(events)
            events.append(["a", entry["size"], places.setdefault(said(entry["frames"]), len(places))])
        elif entry["action"] == "free_completed" and entry["addr"] in known:
            events.append(["f", known.pop(entry["addr"])])
        elif entry["action"] in ("segment_alloc", "segment_free", "segment_map", "segment_unmap"):
            events.append([entry["action"], entry["size"]])
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt") as file:
        json.dump({"places": list(places), "events": events}, file)


def said(frames: list[dict[str, Any]]) -> str:
    """The innermost frame, and the innermost of the workload."""
    shown = [f"{os.path.basename(one['filename'])}:{one['line']}:{one['name']}" for one in frames]
    own = [text for text, one in zip(shown, frames, strict=False) if "forecast_workloads" in one["filename"]]
    return " < ".join([*shown[:3], *own[:1]])


def _child(pipe: Any, name: str, batch: int, traces: str | None) -> None:
    try:
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            pipe.send(measured(name, batch, traces))
    except BaseException:
        pipe.send({"error": traceback.format_exc()[-800:]})
    pipe.close()
    os._exit(0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--sealed", action="store_true")
    parser.add_argument("--traces")
    args = parser.parse_args()
    warm()
    import torch

    runs = [(name, batch) for name, sizes in (SEALED if args.sealed else OPEN).items() for batch in sizes]
    found: dict[str, Any] = {"torch": torch.__version__, "runs": {}}
    context = multiprocessing.get_context("fork")
    for name, batch in runs:
        if args.only and name not in args.only:
            continue
        mine, its = context.Pipe()
        process = context.Process(target=_child, args=(its, name, batch, args.traces))
        process.start()
        its.close()
        try:
            answer = mine.recv() if mine.poll(90) else {"error": "no answer in 90 s"}
        except EOFError:
            answer = {"error": "died"}
        process.join(15)
        if process.is_alive():
            process.kill()
        found["runs"][f"{name}-{batch}"] = answer
        print(
            name,
            batch,
            {key: value for key, value in answer.items() if key != "error"},
            answer["error"][-200:],
            flush=True,
        )
        Path(args.out).write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
