"""The allocator's settings as text: which environment variable, and what may stand in it. No torch needed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from gpulint.analysis.torch.allocator import SINCE, bad_options, split_size
from gpulint.units import options, parts

OLD: Final = "PYTORCH_CUDA_ALLOC_CONF"
NEW: Final = "PYTORCH_ALLOC_CONF"
# torch 2.8 brought the new name with a warning about the old one, yet 2.9 does not apply `expandable_segments`
# from the new one; 2.12 reads both and warns about neither.
NEW_SINCE: Final = (2, 12)
EXPANDABLE_SINCE: Final = (2, 1)

KEYS: Final = frozenset(SINCE)
_CARDS: Final = re.compile(r"\s*(?:(?:-?\d+|(?:GPU|MIG)-[\w/-]+)\s*(?:,\s*|$))*")


def version_tuple(version: str) -> tuple[int, int]:
    """(2, 11) of "2.11.0+cu130". Raises ValueError where there is no version in it."""
    match = re.match(r"(\d+)\.(\d+)", version)
    if match is None:
        raise ValueError(f"{version!r} is not a version of torch")
    return int(match[1]), int(match[2])


def variable_for(version: str | None) -> str:
    """The variable that this version of torch obeys. The old name where the version is not known: torch reads
    it in every version for CUDA, at worst with a warning."""
    return NEW if version is not None and version_tuple(version) >= NEW_SINCE else OLD


def parse(text: str) -> dict[str, str]:
    """Settings in order of appearance: `"a:1,b:[64:8,>:4]"` gives `{"a": "1", "b": "[64:8,>:4]"}`.

    Raises ValueError for text that is not of this form.
    """
    written = text.replace(" ", "")
    for part in parts(written):
        if not all(part.partition(":")):
            raise ValueError(
                f"allocator settings are written key:value,key:value; {part!r} is not of this form"
            )
    return dict(options(written))


def refusal(text: str) -> str | None:
    """The first thing in these settings that torch refuses, in a sentence; None where it takes them all."""
    for problem in bad_options(text):
        meant = f" (`{problem.mended}`)" if problem.mended else ""
        return "; ".join(filter(None, (problem.what, problem.hint))) + meant
    return None


def render(settings: Mapping[str, object]) -> str:
    """The text for the environment variable."""
    return ",".join(f"{key}:{value}" for key, value in settings.items())


def from_keywords(settings: Mapping[str, object]) -> dict[str, str]:
    """Settings as `configure` takes them: True, 0.8, 128, or `{256: 4, ">": 2}` for `roundup_power2_divisions`.

    None leaves a setting out. Raises ValueError for a name that torch does not know.
    """
    found: dict[str, str] = {}
    for key, value in settings.items():
        if key not in KEYS:
            raise ValueError(f"torch's allocator has no setting {key!r}; it knows {', '.join(sorted(KEYS))}")
        if value is None:
            continue
        if isinstance(value, Mapping):
            found[key] = "[" + ",".join(f"{size}:{parts}" for size, parts in value.items()) + "]"
        else:
            found[key] = str(value)
    return found


def automatic(version: str | None, platform: str) -> dict[str, str]:
    """What measurements recommend for this torch: expandable segments where they exist, else nothing.

    On batches of varying length they reserved 6.4 GiB where the default took 22.4 GiB and `max_split_size_mb:128`
    106 GiB (H200, torch 2.11).
    """
    if not platform.startswith("linux"):
        return {}
    if version is not None and version_tuple(version) < EXPANDABLE_SINCE:
        return {}
    return {"expandable_segments": "True"}


def warnings_for(settings: Mapping[str, str]) -> tuple[str, ...]:
    """What measurements say against settings that people copy, as GPU601 says it."""
    found = []
    split = split_size(render(settings))
    if split is not None:
        found.append(f"{split.message} (GPU601): {split.measured}; {split.remedy}")
    if "garbage_collection_threshold" in settings and settings.get("expandable_segments") == "True":
        found.append(
            "`garbage_collection_threshold` acts on unsplit segments, of which `expandable_segments:True` has few"
        )
    return tuple(found)


def lists_cards(visible: str) -> bool:
    """Whether a value of `CUDA_VISIBLE_DEVICES` is a list of cards, by number or name; "0.8" is none."""
    return _CARDS.fullmatch(visible) is not None


def not_a_limit(visible: str) -> str:
    """What to say of `CUDA_VISIBLE_DEVICES`, which some take for a limit on memory."""
    what = "chooses cards" if lists_cards(visible) else "is no list of cards"
    return f"`CUDA_VISIBLE_DEVICES={visible}` {what} and limits no memory: `memory.limit(0.8)` does"
