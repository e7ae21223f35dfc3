"""The allocator's settings as a snapshot records them."""

from __future__ import annotations

from dataclasses import replace

from gpulint.allocator import Settings, parse_settings
from gpulint.allocator.settings import UNLIMITED
from gpulint.snapshot.recording import SETTINGS, Recording


def settings_of(recording: Recording) -> tuple[Settings, str]:
    """The settings that were in force, and their text; the default's where the snapshot has none (torch before 2.2)."""
    given = recording.settings
    text = str(given.get(SETTINGS) or "")
    try:
        settings = parse_settings(text)
    except ValueError:
        settings = Settings()
    most = given.get("max_split_size")
    if isinstance(most, int):
        settings = replace(settings, max_split=most if 0 < most < UNLIMITED else UNLIMITED)
    if isinstance(given.get("expandable_segments"), bool):
        settings = replace(settings, expandable=given["expandable_segments"])
    if isinstance(given.get("garbage_collection_threshold"), float):
        settings = replace(settings, gc_threshold=given["garbage_collection_threshold"])
    divisions = given.get("roundup_power2_divisions")
    if isinstance(divisions, dict) and len(divisions) == 16:
        numbers = [value for value in divisions.values() if type(value) is int]
        settings = replace(settings, divisions=tuple(numbers)) if len(numbers) == 16 else settings
    return settings, text
