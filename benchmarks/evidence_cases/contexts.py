"""GPU605: which calls make a CUDA context, on which card, and how much of the card it takes. A process for each call: a
context stays as long as its process."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from threading import Thread, Timer
from typing import Any

import torch

from evidence_cases.processes import ProcessCase
from evidence_cases.setup import Size

SECONDS = 60  # a process that has not begun by then has failed

CHILD = """
import os, sys
import torch
own = int(os.environ["LOCAL_RANK"])
{before}
{then}
count = torch.cuda.device_count() if torch.cuda.is_available() else 0
asked = getattr(torch._C, "_cuda_hasPrimaryContext", lambda card: False)
print("ready", *(card for card in range(count) if asked(card)), flush=True)
sys.stdin.readline()
"""

# What a program does before it says which card is its own.
CALLS = (
    "is_available", "device_count", "manual_seed_all(0)", "empty_cache", "init", "current_device", "get_device_name",
    "get_device_properties(0)", "get_device_capability", "is_bf16_supported", "mem_get_info", "memory_allocated",
    "reset_peak_memory_stats", "synchronize", "Stream",
)  # fmt: skip
BEFORE = {
    "nothing": "",
    **{(call := f"torch.cuda.{name}" + "()" * ("(" not in name)): call for name in CALLS},
    "torch.cuda.Event(); record()": "torch.cuda.Event().record()",
    "torch.zeros(1).cuda()": "torch.zeros(1).cuda()",
    'torch.zeros(1, device="cuda")': 'torch.zeros(1, device="cuda")',
    'torch.zeros(1, device=f"cuda:{rank}")': 'torch.zeros(1, device=f"cuda:{own}")',
    'torch.Generator(device="cuda")': 'torch.Generator(device="cuda")',
}
OWN_CARD = "torch.cuda.set_device(own)\ntorch.zeros(1, device='cuda')"
GROUP = "torch.distributed.init_process_group({backend!r})"
BARRIER = "torch.distributed.barrier()"
REDUCED = """
value = torch.zeros(1, device=f'cuda:{{own}}')
torch.distributed.all_reduce(value)
torch.cuda.synchronize(own)"""


@dataclass(frozen=True)
class Taken:
    """What a process takes of each card, in bytes, and the cards that it has a context on."""

    bytes: tuple[int, ...]
    contexts: tuple[int, ...]


def free() -> list[int]:
    """The free bytes of every card."""
    return [torch.cuda.mem_get_info(card)[0] for card in range(torch.cuda.device_count())]


@contextmanager
def running(before: str, then: str, rank: int, ranks: int, port: int) -> Iterator[str]:
    """A process that has done the one and then the other, and waits; gives what it said, or why it did not."""
    variables = {
        **os.environ, "LOCAL_RANK": str(rank), "RANK": str(rank), "WORLD_SIZE": str(ranks),
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
    }  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD.format(before=before, then=then)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    late = Timer(SECONDS, process.kill)
    late.start()
    try:
        said = next((line for line in process.stdout if line.startswith("ready")), "")
        yield said or f"error: {(process.stderr.read().strip().splitlines() or [''])[-1][:200]}"
    finally:
        late.cancel()
        process.kill()
        process.communicate(timeout=SECONDS)


def free_port() -> int:
    with socket.socket() as waiting:
        waiting.bind(("127.0.0.1", 0))
        return int(waiting.getsockname()[1])


def taken(before: str, then: str, rank: int, cards: int) -> Taken | str:
    """What a process of this rank takes, or why it failed."""
    earlier = free()
    with running(before, then, rank, cards, free_port()) as said:
        if said.startswith("error"):
            return said
        now = free()
    return Taken(
        tuple(max(0, then_ - now_) for then_, now_ in zip(earlier, now, strict=True)),
        tuple(map(int, said.split()[1:])),
    )


def noted(found: Taken | str, rank: int) -> dict[str, Any]:
    """A variant's figures: on the rank's own card and on card 0, which is foreign to it unless it is the first."""
    if isinstance(found, str):
        return {"error": [found]}
    foreign = [card for card in found.contexts if card != rank]
    notes = {"taken of its own card": found.bytes[rank]}
    if rank:
        notes["taken of card 0"] = found.bytes[0]
        notes["contexts on foreign cards, contexts"] = len(foreign)
    return {"notes": notes, "outcomes": {"contexts": list(found.contexts), "bytes": list(found.bytes)}}


def calls(device: str, size: Size, steps: int) -> dict[str, Any]:
    """Each call in a program that does nothing else: on one card the size of a context, on two where it is made, with
    the card chosen after it."""
    if device != "cuda":
        return {"nothing": {"error": ["there is no GPU"]}}
    cards = torch.cuda.device_count()
    for card in range(cards):
        # this process's own contexts must be there before others are weighed
        torch.zeros(1, device=f"cuda:{card}")
    rank = 1 if cards > 1 else 0
    then = OWN_CARD if cards > 1 else ""
    return {name: noted(taken(code, then, rank, cards), rank) for name, code in BEFORE.items()}


GROUPS = {
    "set_device, init_process_group, barrier": ("torch.cuda.set_device(own)", GROUP + "\n" + BARRIER),
    "init_process_group, barrier, set_device": ("", GROUP + "\n" + BARRIER + "\n" + OWN_CARD),
    "init_process_group, set_device, barrier": ("", GROUP + "\n" + OWN_CARD + "\n" + BARRIER),
    'init_process_group, all_reduce of a tensor on f"cuda:{rank}"': ("", GROUP + REDUCED),
}


def groups(device: str, size: Size, steps: int) -> dict[str, Any]:
    """Process groups of NCCL over all cards: the first and the last rank are weighed together."""
    if device != "cuda" or torch.cuda.device_count() < 2:
        return {"nothing": {"error": ["there are no two GPUs"]}}
    return {name: _group(before, then.format(backend="nccl")) for name, (before, then) in GROUPS.items()}


def _group(before: str, then: str) -> dict[str, Any]:
    port, cards, said = free_port(), 2, {}
    with ExitStack() as stack:
        # both have to be started before either gets past the barrier
        threads = [
            Thread(target=lambda r=rank: said.update({r: stack.enter_context(running(before, then, r, cards, port))}))
            for rank in range(cards)
        ]  # fmt: skip
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SECONDS)
        if len(said) < cards or any(text.startswith("error") for text in said.values()):
            return {"error": [said.get(1) or said.get(0) or "it hung"]}
        contexts = [int(card) for card in said[1].split()[1:]]
    return {
        "notes": {"contexts of rank 1 on foreign cards, contexts": sum(card != 1 for card in contexts)},
        "outcomes": {"contexts of rank 1": contexts},
    }


CASES = [
    ProcessCase("GPU605", "what makes a context", calls),
    ProcessCase("GPU605", "process groups of two ranks", groups),
]
