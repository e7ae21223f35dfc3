"""Who else is on the cards that a run can see: through NVML, or nvidia-smi where its Python library is not installed."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpulint.operator import gpu, processes
from gpulint.runtime.record.gate import Neighbour

UNSEEN = (
    128 * 1024**2
)  # bytes on a card that nobody accounts for, above which somebody is there who cannot be seen
_PATIENCE = 20.0  # seconds that nvidia-smi may take


@dataclass(frozen=True, slots=True)
class Tenancy:
    """One process on one card. `bytes` is None where the driver does not tell."""

    uuid: str
    pid: int
    bytes: int | None


@dataclass(frozen=True, slots=True)
class Look:
    """What the driver says: cards as (index, uuid, name, used bytes or None), and who is on them. `problem` says why it could
    not be asked."""

    cards: tuple[tuple[int, str, str, int | None], ...] = ()
    tenants: tuple[Tenancy, ...] = ()
    problem: str = ""


def look() -> Look:
    """Ask the driver."""
    try:
        with gpu.driver() as nvml:
            return _through_nvml(nvml)
    except gpu.NoDriver as error:
        tool = shutil.which("nvidia-smi")
        return _through_tool(tool) if tool is not None else Look(problem=str(error))


def others(seen: Look, environment: Mapping[str, str], when: Any = "before") -> tuple[Neighbour, ...]:
    """The processes on the cards that CUDA_VISIBLE_DEVICES leaves a run, which itself must not be running. One that
    takes memory and is listed nowhere has the number 0."""
    found: list[Neighbour] = []
    for index, uuid, name, used in visible(seen, environment.get("CUDA_VISIBLE_DEVICES")):
        card = f"GPU {index} ({name})"
        here = [tenant for tenant in seen.tenants if tenant.uuid == uuid]
        for tenant in here:
            found.append(Neighbour(card, uuid, tenant.pid, tenant.bytes, _command(tenant.pid), when))
        known = sum(tenant.bytes or 0 for tenant in here)
        if used is not None and all(tenant.bytes is not None for tenant in here) and used - known > UNSEEN:
            found.append(Neighbour(card, uuid, 0, used - known, "", when))
    return tuple(found)


def visible(seen: Look, setting: str | None) -> Sequence[tuple[int, str, str, int | None]]:
    """The cards that a setting of CUDA_VISIBLE_DEVICES leaves. Of parts of a card (MIG) it is not known which card they are
    of: then all count."""
    if setting is None or "MIG" in setting:
        return seen.cards
    wanted = []
    for word in (part.strip() for part in setting.split(",")):
        match = [card for card in seen.cards if word and (word == str(card[0]) or card[1].startswith(word))]
        if not match:
            break  # CUDA, too, sees nothing of what comes after a card that is not there
        wanted += match[:1]
    return wanted


def _command(pid: int) -> str:
    """What runs under a number, where that is a process of this container which has a GPU open."""
    known = processes.describe(pid)
    return known.command if known is not None and processes.opens_gpu(pid) is not False else ""


def _through_nvml(nvml: Any) -> Look:
    cards, tenants = [], []
    for card in gpu.read_cards(nvml):
        used = card.used
        with contextlib.suppress(Exception):  # without what the driver keeps for itself, where it can tell
            handle = nvml.nvmlDeviceGetHandleByIndex(card.index)
            used = int(nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2).used)
        cards.append((card.index, card.uuid, card.name, used))
        tenants += [Tenancy(card.uuid, tenant.pid, tenant.bytes) for tenant in card.tenants]
    return Look(tuple(cards), tuple(tenants))


def _through_tool(tool: str) -> Look:
    cards = _rows(tool, "--query-gpu=index,uuid,name,memory.used")
    if cards is None:
        return Look(problem="nvidia-smi does not answer")
    listed = _rows(tool, "--query-compute-apps=gpu_uuid,pid,used_memory") or []
    return Look(
        tuple((int(row[0]), row[1], row[2], _mebibytes(row[3])) for row in cards if len(row) == 4),
        tuple(
            Tenancy(row[0], int(row[1]), _mebibytes(row[2]))
            for row in listed
            if len(row) == 3 and row[1].isdigit()
        ),
    )


def _rows(tool: str, question: str) -> list[list[str]] | None:
    try:
        done = subprocess.run(
            [tool, question, "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    if done.returncode:
        return None
    return [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(done.stdout)) if row]


def _mebibytes(text: str) -> int | None:
    return int(text) * 1024**2 if text.isdigit() else None
