"""Where a program sets the allocator's environment variable, to what, and what torch makes of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from gpulint.analysis.code import ir
from gpulint.analysis.file.lookup import constant, qualified
from gpulint.analysis.torch.allocator import ON_AMD, SINCE

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

VARIABLES: Final = frozenset({"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF"})
VISIBLE: Final = "CUDA_VISIBLE_DEVICES"
_SETTERS = frozenset({"setdefault", "putenv", "setenv", "__setitem__"})
_DIRECT = frozenset({"_set_allocator_settings", "_accelerator_setAllocatorSettings"})

# Option → the first version of torch that knows it, or "" where only that 2.11 does is certain. An option that torch
# does not know stops the program.
OPTIONS: Final = {**SINCE, **ON_AMD}
# Options of earlier versions, with the version that refuses them for certain.
GONE: Final = {"roundup_bypass_threshold_mb": "2.11"}
_SWITCHES = frozenset(
    "expandable_segments pinned_use_cuda_host_register release_lock_on_cudamalloc pinned_use_background_threads "
    "graph_capture_record_stream_reuse throw_on_cudamalloc_oom pinned_free_catch_all".split()
)
# Splitting is forbidden above this size: from here on few blocks of a training step are as large.
HARMLESS_SPLIT_MB: Final = 1024


@dataclass(slots=True)
class Setting:
    """An allocator setting, or the choice of visible devices, put into the environment.

    `text` has `{}` for what only a run can tell and is None where nothing is known; `spelled` is the expression that
    holds it. `own` says that this process's own environment is meant.
    """

    function: ir.Function
    stmt: ir.Stmt
    variable: str
    value: ir.Expr
    own: bool
    text: str | None = None
    spelled: ir.Expr | None = None


def settings(file: FileAnalysis) -> list[Setting]:
    """Every place of a file where one of the variables is set."""
    found: list[Setting] = []
    for function, evidence in file.evidence.items():
        if VARIABLES & evidence.strings or VISIBLE in evidence.strings or _DIRECT & evidence.words:
            for statement in ir.statements(function.body):
                for setting in _in_statement(file, function, statement):
                    spelled = constant(file, function, setting.value)
                    if spelled is not None:
                        setting.text, setting.spelled = spelled
                    found.append(setting)
    return found


def _in_statement(file: FileAnalysis, function: ir.Function, statement: ir.Stmt) -> Iterator[Setting]:
    if isinstance(statement, ir.Assign) and statement.value is not None:
        for target in statement.targets:
            if isinstance(target, ir.Sub) and (name := _variable(target.index)) is not None:
                own = _is_environ(file, function, target.base)
                yield Setting(function, statement, name, statement.value, own)
    for expr in ir.own_parts(statement):
        if isinstance(expr, ir.Call):
            yield from _in_call(file, function, statement, expr)
        elif isinstance(expr, ir.DictDisplay):
            for key, value in expr.pairs:
                if key is not None and (name := _variable(key)) is not None:
                    own = _updates_environ(file, function, statement, expr)
                    yield Setting(function, statement, name, value, own)


def _in_call(
    file: FileAnalysis, function: ir.Function, statement: ir.Stmt, call: ir.Call
) -> Iterator[Setting]:
    if call.method in _SETTERS and len(call.args) == 2 and (name := _variable(call.args[0])) is not None:
        base = call.func.base if isinstance(call.func, ir.Attr) else call.func
        own = call.method == "putenv" or _is_environ(file, function, base)
        yield Setting(function, statement, name, call.args[1], own)
    elif call.method in _DIRECT and call.args:
        yield Setting(function, statement, "PYTORCH_CUDA_ALLOC_CONF", call.args[0], False)
    for key, value in call.keywords:
        if key in VARIABLES or key == VISIBLE:
            own = call.method == "update" and isinstance(call.func, ir.Attr)
            own = own and _is_environ(file, function, call.func.base)  # type: ignore[attr-defined]
            yield Setting(function, statement, key or "", value, own)


def _variable(expr: ir.Expr) -> str | None:
    value = expr.value if isinstance(expr, ir.Const) else None
    return value if isinstance(value, str) and (value in VARIABLES or value == VISIBLE) else None


def _is_environ(file: FileAnalysis, function: ir.Function, expr: ir.Expr) -> bool:
    return qualified(file, function, expr.path) == "os.environ"


def _updates_environ(
    file: FileAnalysis, function: ir.Function, statement: ir.Stmt, display: ir.DictDisplay
) -> bool:
    """`os.environ.update({…})`, `os.environ |= {…}`."""
    if isinstance(statement, ir.AugAssign):
        return statement.value is display and _is_environ(file, function, statement.target)
    if not isinstance(statement, ir.ExprStmt) or not isinstance(statement.value, ir.Call):
        return False
    call = statement.value
    return (
        call.method == "update"
        and isinstance(call.func, ir.Attr)
        and display in call.args
        and _is_environ(file, function, call.func.base)
    )


# --- what a setting says -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SplitSize:
    """`max_split_size_mb` in a setting. `mended` is the setting as it was meant."""

    size: int | None
    expandable: bool
    mended: str


@dataclass(frozen=True, slots=True)
class BadOption:
    """Something in a setting that torch refuses. `mended` is the setting with the nearest right thing, if any."""

    what: str
    hint: str
    mended: str | None = None


def parts(text: str) -> list[str]:
    """The options of a setting as written; brackets keep their commas."""
    return [part for part in re.split(r",(?![^\[]*\])", text) if part.strip()]


def option_names(text: str | None) -> tuple[str, ...]:
    """The names of the options in a setting, as far as they are known."""
    return tuple(part.partition(":")[0].strip() for part in parts(text or "") if ":" in part)


def split_size(text: str) -> SplitSize | None:
    """`max_split_size_mb` of a size that leaves the usual tensors of a training step unsplit; else None."""
    given = {key.strip(): value.strip() for key, _, value in (part.partition(":") for part in parts(text))}
    if "max_split_size_mb" not in given:
        return None
    digits = re.match(r"\d+", given["max_split_size_mb"])
    size = int(digits[0]) if digits is not None else None
    if size is not None and size >= HARMLESS_SPLIT_MB:
        return None
    if given.get("backend", "native") != "native":
        return None  # that allocator does not split at all
    expandable = given.get("expandable_segments") == "True"
    rest = [part for part in parts(text) if not part.strip().startswith("max_split_size_mb:")]
    if not expandable:
        rest = [part for part in rest if not part.strip().startswith("expandable_segments:")]
        rest.insert(0, "expandable_segments:True")
    return SplitSize(size, expandable, ",".join(part.strip() for part in rest))


def bad_options(text: str, target: tuple[int, int] | None = None) -> list[BadOption]:
    """What torch refuses in a setting; `target` is the oldest torch that must take it, where that is known."""
    found: list[BadOption] = []
    given = parts(text)
    for position, part in enumerate(given):
        problem = _bad_option(part, target)
        if problem is not None:
            if problem.mended is not None:
                mended = ",".join([*given[:position], problem.mended, *given[position + 1 :]])
                problem = BadOption(problem.what, problem.hint, mended)
            found.append(problem)
    return found


def _bad_option(part: str, target: tuple[int, int] | None) -> BadOption | None:
    key, colon, value = (piece.strip() for piece in part.partition(":"))
    if "{}" in key or part.strip() == "{}":
        return None  # not known before the run
    if not colon:
        written = re.fullmatch(r"\s*(\w+)\s*=\s*(\w+)\s*", part)
        mended = f"{written[1]}:{written[2]}" if written is not None and written[1] in OPTIONS else None
        what = f"`{part.strip()}` is not of the form `option:value`"
        return BadOption(what, "torch stops when it is imported", mended)
    if key in GONE:
        if target is not None and target < _version(GONE[key]):
            return None
        return BadOption(f"torch {GONE[key]} does not know `{key}` any more", "")
    if key not in OPTIONS:
        near = get_close_matches(key, OPTIONS, 1, 0.8)
        hint = f"did you mean `{near[0]}`?" if near else f"it knows {', '.join(sorted(_USUAL))} and others"
        return BadOption(
            f"torch's allocator has no option `{key}`", hint, f"{near[0]}:{value}" if near else None
        )
    if OPTIONS[key] and target is not None and target < _version(OPTIONS[key]):
        return BadOption(
            f"`{key}` is new in torch {OPTIONS[key]}", f"torch {target[0]}.{target[1]} refuses it"
        )
    return _bad_value(key, value)


_USUAL = (
    "backend",
    "expandable_segments",
    "garbage_collection_threshold",
    "max_split_size_mb",
    "roundup_power2_divisions",
)


def _bad_value(key: str, value: str) -> BadOption | None:
    if "{}" in value:
        return None
    if key in _SWITCHES and value not in ("True", "False"):
        lowered = {"true": "True", "1": "True", "on": "True", "false": "False", "0": "False", "off": "False"}
        mended = lowered.get(value.lower())
        what = f"`{key}:{value}`: torch takes only `True` and `False`"
        return BadOption(what, "", f"{key}:{mended}" if mended else None)
    if (
        key == "garbage_collection_threshold"
        and (number := _number(value)) is not None
        and not 0 < number < 1
    ):
        return BadOption(f"`{key}:{value}`: torch takes a fraction between 0 and 1", "")
    least = _LEAST_MB.get(key)
    if least is not None:
        digits = re.match(r"\s*\+?(\d+)", value)  # torch stops reading at what is none
        if digits is None or int(digits[1]) < least:
            return BadOption(f"`{key}:{value}`: torch takes {least} and more", "")
    if key == "roundup_power2_divisions":
        return _bad_divisions(key, value)
    if key == "backend" and value not in ("native", "cudaMallocAsync"):
        return BadOption(f"`{key}:{value}`: torch knows the backends `native` and `cudaMallocAsync`", "")
    return None


# Sizes in MiB, the least that torch takes.
_LEAST_MB: Final = {"max_split_size_mb": 20, "max_non_split_rounding_mb": 20, "large_segment_size_mb": 11}


def _bad_divisions(key: str, value: str) -> BadOption | None:
    """One number, or `[256:1,512:2,>:4]`, of powers of two; 0 switches off, in the list only."""
    if not value.startswith("["):
        right = value.isdecimal() and _is_power_of_two(int(value))
        return None if right else BadOption(f"`{key}:{value}`: torch takes a power of two", "")
    if not value.endswith("]"):
        return BadOption(f"`{key}:{value}`: the bracket is not closed", "torch stops with an internal assertion")
    for part in value[1:-1].split(","):
        bound, _, number = (piece.strip() for piece in part.partition(":"))
        numbers = [] if bound == ">" else [bound]
        if not all(one.isdecimal() and _is_power_of_two(int(one)) for one in numbers) or not (
            number.isdecimal() and (number == "0" or _is_power_of_two(int(number)))
        ):
            return BadOption(f"`{part}` in `{key}`: torch takes a power of two for both, or `>` and one", "")
    return None


def _is_power_of_two(number: int) -> bool:
    return number > 0 and not number & (number - 1)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _version(text: str) -> tuple[int, int]:
    major, _, minor = text.partition(".")
    return int(major), int(minor)


def target_version(text: object) -> tuple[int, int] | None:
    """(2, 4) of the option's text "2.4"; None where none is given."""
    found = re.match(r"(\d+)\.(\d+)", str(text or ""))
    return None if found is None else (int(found[1]), int(found[2]))
