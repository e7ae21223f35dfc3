"""Who else is on the cards that a run can see: through NVML, or nvidia-smi where its Python library is not installed."""

from __future__ import annotations

import csv
import io
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gpulint.memory.accounts.driver import read_card
from gpulint.operator import gpu
from gpulint.operator.gpu import Card
from gpulint.runtime.record.gate import Neighbour

UNSEEN = 128 * 1024**2  # bytes that nobody accounts for, above which somebody is there who cannot be seen
_PATIENCE = 20.0  # seconds that nvidia-smi may take


def look() -> tuple[list[Card], str]:
    """The cards, with the processes on them, without what the driver keeps for itself where it can tell; and why it could not be
    asked."""
    try:
        with gpu.driver() as nvml:
            seen = [(card, read_card(nvml, card.uuid)) for card in gpu.read_cards(nvml)]
            return [card if own is None else replace(card, used=own.used) for card, own in seen], ""
    except gpu.NoDriver as error:
        tool = shutil.which("nvidia-smi")
        return _through_tool(tool) if tool is not None else ([], str(error))


def others(cards: list[Card], environment: Mapping[str, str], when: Any = "before") -> tuple[Neighbour, ...]:
    """The processes on the cards that CUDA_VISIBLE_DEVICES leaves a run, which itself must not be running. One that
    takes memory and is listed nowhere has the number 0."""
    found: list[Neighbour] = []
    for card in visible(cards, environment.get("CUDA_VISIBLE_DEVICES")):
        name = f"GPU {card.index} ({card.name})"
        for one in card.tenants:
            found.append(Neighbour(name, card.uuid, one.pid, one.bytes, one.command, when))
        if card.unexplained > UNSEEN:
            found.append(Neighbour(name, card.uuid, 0, card.unexplained, "", when))
    return tuple(found)


def visible(cards: list[Card], setting: str | None) -> list[Card]:
    """The cards that a setting of CUDA_VISIBLE_DEVICES leaves. Of parts of a card (MIG) it is not known which card they are
    of: then all count."""
    if setting is None or "MIG" in setting:
        return cards
    wanted: list[Card] = []
    for word in (part.strip() for part in setting.split(",")):
        match = [card for card in cards if word and (word == str(card.index) or card.uuid.startswith(word))]
        if not match:
            break  # CUDA, too, sees nothing of what comes after a card that is not there
        wanted += match[:1]
    return wanted


def _through_tool(tool: str) -> tuple[list[Card], str]:
    cards = _rows(tool, "--query-gpu=index,uuid,name,memory.used")
    if cards is None:
        return [], "nvidia-smi does not answer"
    listed = _rows(tool, "--query-compute-apps=gpu_uuid,pid,used_memory") or []
    found = []
    for index, uuid, name, used in cards:
        here = [(int(pid), _mebibytes(size)) for on, pid, size in listed if on == uuid and pid.isdigit()]
        tenants = tuple(gpu.tenant(pid, size) for pid, size in here)
        found.append(Card(int(index), name, uuid, used=_mebibytes(used), tenants=tenants))
    return found, ""


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
    rows = ([cell.strip() for cell in row] for row in csv.reader(io.StringIO(done.stdout)))
    return [row for row in rows if len(row) == question.count(",") + 1]


def _mebibytes(text: str) -> int | None:
    return int(text) * 1024**2 if text.isdigit() else None
