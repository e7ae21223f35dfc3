"""Calls of torch's operators as they occur in networks, each a generator of named phases: `benchmarks/forecast_operators.py` runs
them on a GPU and with a faked one."""

from __future__ import annotations

from importlib import import_module

from forecast_calls.calls import Call

# The most telling first: a measurement may end before all are done.
PARTS = "steps training layers attending losses products gathering mathematics recurrent convolving".split()
CALLS: list[Call] = [call for part in PARTS for call in import_module(f"forecast_calls.{part}").CALLS]
