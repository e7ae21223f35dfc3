"""Loops that take the data one item at a time: each round opens a file, a frame or a text, or reads a sample of a data set."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.file.lookup import called, qualified

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

# What opens a picture, a recording, a volume or an array.
_READERS = frozenset(
    {
        "PIL.Image.open", "cv2.imread", "numpy.load", "torchaudio.load", "librosa.load", "librosa.core.load",
        "soundfile.read", "scipy.io.wavfile.read", "torchvision.io.read_image", "torchvision.io.read_video",
        "torchvision.io.decode_image", "torchvision.datasets.folder.default_loader", "imageio.imread", "imageio.v2.imread",
        "imageio.v3.imread", "skimage.io.imread", "nibabel.load", "pydicom.dcmread", "SimpleITK.ReadImage",
        "decord.VideoReader", "cv2.VideoCapture", "tifffile.imread", "rasterio.open",
    }
)  # fmt: skip
_LISTINGS = frozenset("glob iglob rglob listdir scandir iterdir".split())
_WRAPPERS = frozenset("enumerate tqdm trange sorted list reversed track zip tuple iter".split())
_SET = re.compile(r"(?i)data_?set|(?:^|_)ds$")
# Rounds of these are over weights or over settings, not over data.
_OTHER_MODELS = frozenset(
    "load_state_dict from_pretrained load_from_checkpoint load_model load_checkpoint".split()
)


def takes_items(file: FileAnalysis, function: ir.Function, loop: ir.For | ir.While) -> bool:
    """Whether each round of a loop opens or reads its own item of the data."""
    if any(call.method in _OTHER_MODELS for _, call in ir.calls(loop.body)):
        return False
    if isinstance(loop, ir.While):
        return _reads_frames(file, function, loop)
    if _is_fixed(loop.iterable):
        return False
    names = _derived(loop)
    if _indexes_data_set(loop, names):
        return True
    listed = _lists_files(function, loop.iterable)
    for _, call in ir.calls(loop.body):
        if not call.args or not _speaks_of(call.args[0], names):
            continue
        full = qualified(file, function, call.func.path)
        if full in _READERS or (call.keyword("return_tensors") is not None and _is_item(loop, call.args[0])):
            return True
        if full is None and (_opens(file, called(file, function, call)) or (listed and _is_loader(call))):
            return True
    return False


def _is_fixed(iterable: ir.Expr) -> bool:
    """`range(10)`, `[a, b]`: the text says how many rounds there are."""
    iterable = _unwrapped(iterable)
    if isinstance(iterable, ir.Call) and iterable.method == "range":
        return not any(isinstance(part, ir.Call) and part.method == "len" for part in ir.walk(iterable))
    return isinstance(iterable, (ir.Seq, ir.Const, ir.DictDisplay))


def _unwrapped(iterable: ir.Expr) -> ir.Expr:
    while isinstance(iterable, ir.Call) and iterable.method in _WRAPPERS and iterable.args:
        iterable = iterable.args[0]
    return iterable


def _derived(loop: ir.For) -> set[str]:
    """The loop's names and what its body makes of them, texts and paths among it."""
    names = {part.id for part in ir.walk(loop.target) if isinstance(part, ir.Name)}
    for statement in ir.statements(loop.body):
        if isinstance(statement, ir.Assign) and statement.value is not None:
            if any(isinstance(part, ir.Name) and part.id in names for part in ir.walk(statement.value)):
                names |= {target.id for target in targets(statement) if isinstance(target, ir.Name)}
    return names


def _speaks_of(expr: ir.Expr, names: set[str]) -> bool:
    return any(isinstance(part, ir.Name) and part.id in names for part in ir.walk(expr))


def _is_item(loop: ir.For, expr: ir.Expr) -> bool:
    """The item itself, in a list or as an entry: not a text that is filled with it, as for a few classes."""
    names = {part.id for part in ir.walk(loop.target) if isinstance(part, ir.Name)}
    if isinstance(expr, ir.Seq) and len(expr.items) == 1:
        expr = expr.items[0]
    while isinstance(expr, (ir.Attr, ir.Sub)):
        expr = expr.base
    return isinstance(expr, ir.Name) and expr.id in names


def _indexes_data_set(loop: ir.For, names: set[str]) -> bool:
    """`for i in range(len(dataset)): x = dataset[i]`."""
    counted = {
        part.args[0].path
        for part in ir.walk(loop.iterable)
        if isinstance(part, ir.Call) and part.method == "len" and len(part.args) == 1
    }
    sets = {path for path in counted if path is not None and _SET.search(path.rpartition(".")[2])}
    if not sets:
        return False
    return any(
        isinstance(part, ir.Sub) and part.base.path in sets and _speaks_of(part.index, names)
        for statement in ir.statements(loop.body)
        for part in ir.own_parts(statement)
    )


def _lists_files(function: ir.Function, iterable: ir.Expr) -> bool:
    """`sorted(glob(pattern))`, or a name that the function binds to it."""
    if _has_listing(iterable):
        return True
    name = _unwrapped(iterable).path
    if name is None:
        return False
    return any(
        isinstance(statement, ir.Assign) and statement.value is not None and _has_listing(statement.value)
        for statement in ir.statements(function.body)
        if any(target.path == name for target in targets(statement))
    )


def _has_listing(expr: ir.Expr) -> bool:
    return any(isinstance(part, ir.Call) and part.method in _LISTINGS for part in ir.walk(expr))


def _is_loader(call: ir.Call) -> bool:
    """`load_image(path)`, `read_audio(path)`: the role of a function that nothing else shows."""
    return call.method.startswith(("load_", "read_", "open_"))


def _opens(file: FileAnalysis, function: ir.Function | None) -> bool:
    """Whether a function of this file opens what its parameters name."""
    if function is None:
        return False
    given = {param.name for param in function.params}
    return any(
        bool(call.args)
        and _speaks_of(call.args[0], given)
        and qualified(file, function, call.func.path) in _READERS
        for _, call in ir.calls(function.body)
    )


def _reads_frames(file: FileAnalysis, function: ir.Function, loop: ir.While) -> bool:
    """`while True: ok, frame = video.read()` of a video that the program opens."""
    opened = {
        target.path
        for statement in ir.statements(function.body)
        if isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Call)
        if qualified(file, function, statement.value.func.path) == "cv2.VideoCapture"
        for target in targets(statement)
    }
    return bool(opened) and any(
        call.method == "read" and isinstance(call.func, ir.Attr) and call.func.base.path in opened
        for _, call in ir.calls(loop.body)
    )
