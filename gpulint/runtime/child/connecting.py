"""A process's line to the parent: what it is asked, and who answers."""

from __future__ import annotations

import json
import os
from typing import Literal

from gpulint.runtime.child import ending
from gpulint.runtime.child.harness import Harness
from gpulint.runtime.record.channel import ADDRESS, ENOUGH, OPTIONS, TIMEOUT, TOKEN, Channel
from gpulint.runtime.record.result import Options

_REASONS: dict[str, Literal["timeout", "stopped"]] = {TIMEOUT: "timeout", ENOUGH: "stopped"}


def options() -> Options:
    """What the parent asks of every process of the run."""
    return Options.from_json(json.loads(os.environ[OPTIONS]))


def connect(harness: Harness, process: tuple[int, ...] = ()) -> None:
    """Send what the harness has to say, as the script's own process or the worker with these numbers, and end this process when the
    parent asks for it."""
    channel = Channel(os.environ[ADDRESS], os.environ[TOKEN], process)
    harness.connect(channel.send, process)

    def command(word: str) -> None:
        if not harness.done:
            ending.cut_short(harness, _REASONS.get(word, "interrupted"))
        os._exit(0)

    channel.listen(command, lambda: os._exit(1))
