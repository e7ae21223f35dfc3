"""What pytest loads by itself where gpulint is installed. Imports nothing of torch, and nothing that an old pytest lacks.

The plugin is named, not imported: whoever names it too, by `-p gpulint.pytest_plugin` or in a conftest, gets the same one, and
pytest does not stop because it is there twice. A pytest that is too old for it runs without: gpulint may be in an environment
for its rules alone.
"""

from __future__ import annotations

import inspect

import pytest

if hasattr(pytest, "StashKey") and "wrapper" in inspect.signature(pytest.hookimpl).parameters:
    pytest_plugins = ("gpulint.pytest_plugin",)
else:

    def pytest_report_header() -> str:
        """One line above the tests."""
        return f"gpulint: its plugin is left out, it needs pytest 7.4 with pluggy 1.2 (this is pytest {pytest.__version__})"
