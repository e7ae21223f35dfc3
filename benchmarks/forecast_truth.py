"""Runs the workloads of `forecast_workloads/` on a GPU and writes down what they really took: the truth for `forecast.py`.

    python benchmarks/forecast_truth.py OUT.json [--set first|second] [--sealed] [--only NAME ...]
        [--limit-to FORECASTS.json]

Each run is a forked process of its own, so that the libraries are imported once. Figures are bytes: peak allocated and
reserved as torch counts them, and what the driver says that the process took (card in use at the end, less before).

With `--limit-to`, each run gets no more than was forecast for it: the upper end of the interval of *peak reserved* is set by
`torch.cuda.set_per_process_memory_fraction`, which limits what torch's allocator holds. The context and what libraries take from
the driver past torch do not count there, so nothing is taken off for them. `ran_out` says that the script died of it, `ooms`
how often torch ran out (cuDNN then tries another algorithm, and the script goes on), `retries` how often it first had to give
back what it kept. Such figures are no truth to compare with. Runs without a forecast are left out.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import re
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
    "mlp": (256, 1024), "resnet50_amp": (32, 64), "gpt2_fp32": (2, 4), "gpt2_bf16": (4, 8),
    "llama_1b": (1, 2), "bert_lengths": (8, 16), "lstm": (20, 64), "train_eval_save": (128, 256),
}  # fmt: skip
SEALED = {
    "mlp": (4096,), "resnet50_amp": (128,), "gpt2_fp32": (8,), "gpt2_bf16": (16,), "llama_1b": (8,),
    "bert_lengths": (32,), "lstm": (128,), "train_eval_save": (1024,), "vit_b": (8, 32, 96),
    "unet_diffusion": (4, 16, 32), "t5": (4, 8, 16), "lora_1b": (1, 2, 4),
}  # fmt: skip
# other kinds, written by somebody who had not seen how a forecast is made; all of them are sealed
SECOND = {
    "convnext_ema": (32, 128, 320), "retinanet": (2, 6, 16), "wgan_gp": (64, 256, 1024),
    "wav2vec2_ctc": (2, 8, 32), "clip_towers": (64, 256, 768), "translation": (16, 64, 192),
    "unet_segment": (2, 8, 32), "video_r2plus1d": (4, 16, 48), "dqn": (32, 512, 8192),
    "molecules": (64, 512, 4096), "recommender": (1024, 16384, 131072), "distill_lm": (2, 8, 32),
}  # fmt: skip


def script(name: str) -> Path:
    """Where a workload is, of either set."""
    return (WORKLOADS / "second" if name in SECOND else WORKLOADS) / f"{name}.py"


def warm() -> None:
    """Import what the workloads import; nothing here may start CUDA, which does not survive a fork."""
    import peft  # noqa: F401
    import timm.data
    import timm.loss
    import timm.optim
    import timm.utils  # noqa: F401
    import torchvision.models.detection
    import torchvision.models.video  # noqa: F401
    from transformers import (  # noqa: F401
        Adafactor,
        BertForSequenceClassification,
        GPT2LMHeadModel,
        LlamaForCausalLM,
        Qwen3ForCausalLM,
        T5ForConditionalGeneration,
        Wav2Vec2ForCTC,
        get_linear_schedule_with_warmup,
    )


def measured(name: str, batch: int, limit: int | None) -> dict[str, Any]:
    """Run one workload in this process, with `limit` bytes for torch's allocator at most."""
    import torch

    began = time.time()
    free, total = torch.cuda.mem_get_info()
    context = total - free
    if limit is not None:
        torch.cuda.set_per_process_memory_fraction(min(1.0, limit / total))
    path = script(name)
    sys.argv = [str(path), "--batch", str(batch)]
    error, ran_out = "", False
    try:
        runpy.run_path(str(path), run_name="__main__")
    except BaseException as raised:
        error = last_error()
        ran_out = isinstance(raised, torch.cuda.OutOfMemoryError)
    with contextlib.suppress(
        Exception
    ):  # an error of a kernel comes up here again, and the figures are worth having
        torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    stats = torch.cuda.memory_stats()
    return {
        "peak_allocated": stats["allocated_bytes.all.peak"],
        "peak_reserved": stats["reserved_bytes.all.peak"],
        "reserved_at_end": stats["reserved_bytes.all.current"],
        "retries": stats["num_alloc_retries"],
        "ooms": stats["num_ooms"],
        "ran_out": ran_out,
        "limit": limit,
        "used_before": context,
        "used_at_end": total - free,
        "seconds": round(time.time() - began, 1),
        "error": error,
    }


def last_error() -> str:
    """The end of the traceback, with files by their names alone."""
    return re.sub(r'File ".*/', 'File "', traceback.format_exc())[-800:]


def _child(pipe: Any, *given: Any) -> None:
    try:
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            pipe.send(measured(*given))
    except BaseException:
        pipe.send({"error": last_error()})
    pipe.close()
    os._exit(0)


def in_a_fork(name: str, batch: int, limit: int | None) -> dict[str, Any]:
    """What `measured` says in a process of its own, or an `error` where it says nothing."""
    context = multiprocessing.get_context("fork")
    mine, its = context.Pipe()
    process = context.Process(target=_child, args=(its, name, batch, limit))
    process.start()
    its.close()
    try:
        answer = mine.recv() if mine.poll(90) else {"error": "no answer in 90 s"}
    except EOFError:
        answer = {"error": "died"}
    process.join(15)
    if process.is_alive():
        process.kill()
    return answer


def wanted(args: argparse.Namespace) -> list[tuple[str, int, int | None]]:
    """The runs: workload, batch size, and the most that it may reserve, in bytes."""
    table = SECOND if args.set == "second" else SEALED if args.sealed else OPEN
    runs = [
        (name, batch)
        for name, sizes in table.items()
        for batch in sizes
        if not args.only or name in args.only
    ]
    if not args.limit_to:
        return [(name, batch, None) for name, batch in runs]
    told = json.loads(Path(args.limit_to).read_text())["runs"]
    missing = [f"{name}-{batch}" for name, batch in runs if f"{name}-{batch}" not in told]
    if missing:
        print("no forecast of", *missing, flush=True)
    return [
        (name, batch, told[f"{name}-{batch}"]["reserved"][2])
        for name, batch in runs
        if f"{name}-{batch}" in told
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out")
    parser.add_argument("--set", choices=("first", "second"), default="first")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--sealed", action="store_true", help="of the first set; the second is all sealed")
    parser.add_argument("--limit-to", metavar="FORECASTS.json")
    args = parser.parse_args()
    warm()
    import torch

    found: dict[str, Any] = {"torch": torch.__version__, "set": args.set, "runs": {}}
    for name, batch, limit in wanted(args):
        key = f"{name}-{batch}"
        answer = found["runs"][key] = in_a_fork(name, batch, limit)
        told = {one: value for one, value in answer.items() if one != "error"}
        print(name, batch, told, answer["error"][-200:], flush=True)
        Path(args.out).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
