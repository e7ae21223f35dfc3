"""The rules, one file each. Importing this package imports none of them; `all_rules()` does."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gpulint.rule import Rule

# Every rule here has a group of triggers each of which holds one of these: in a file without any of them none can fire, which
# is known before a rule is imported.
MENTIONS: Final = tuple(
    b"torch lightning transformers trl accelerate deepspeed cuda CUDA llocator ALLOC_CONF empty_cache lru_cache functools.cache "
    b"cachetools backward loss criterion create_graph state_dict deepcopy parameters _hook( .step( .eval() .learn( .train( train_step(".split()
)


@cache
def names() -> dict[str, str]:
    """The names of all rules by code, from those of their files: `gpu101_held_graph.py`."""
    stems = sorted(path.stem for path in Path(__file__).parent.glob("gpu[0-9]*.py"))
    parts = (stem.partition("_") for stem in stems)
    return {code.upper(): name.replace("_", "-") for code, _, name in parts}


@cache
def all_rules() -> tuple[type[Rule], ...]:
    """Every rule shipped with gpulint, in the order of their codes: the class in its file that has the code of the file's name."""
    found: list[type[Rule]] = []
    for code, name in names().items():
        module = import_module(f"{__name__}.{code.lower()}_{name.replace('-', '_')}")
        found += [one for one in vars(module).values() if getattr(one, "code", None) == code]
    return tuple(found)
