"""What tests of all folders share."""

from __future__ import annotations

import signal

import pytest
import warm

# Of what is started in the background (`make test &`) Ctrl-C is ignored, and all that it starts would ignore it too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def warm_scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The verifier starts scripts in forks of a process that has imported torch."""
    warm.start_scripts_warm(monkeypatch.setattr)
