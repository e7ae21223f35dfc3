"""What leaves a single number of a tensor for certain: `.item()` on anything else raises."""

from __future__ import annotations

from gpulint.analysis.code import ir
from gpulint.analysis.torch.names import REDUCTIONS
from gpulint.analysis.values.arguments import Args
from gpulint.analysis.values.values import SCALAR, Kind, Val

_DIMENSION = ("dim", "axis", "dims", "axes")
# Arguments of reductions that leave the shape of the result alone.
_HARMLESS = frozenset({"input", "dtype", "p", "correction", "unbiased", "out"})
# What keeps a scalar one; anything else may repeat it, stack it or spread it.
_ELEMENTWISE = frozenset(
    (
        "abs add clamp clamp_min clamp_max clone contiguous cos cpu cuda detach div double exp expm1 float half log "
        "log10 log1p log2 mul neg nan_to_num negative pow relu round rsqrt sigmoid sin softplus sqrt square squeeze sub "
        "tanh to type type_as bfloat16 true_divide maximum minimum max min"
    ).split()
)


def has_dimension(call: ir.Call, args: Args) -> bool:
    """Whether a reduction is told which dimensions to take: `x.mean(0)`, `torch.mean(x, axis=[1, 2])`."""
    if any(name in _DIMENSION for name, _ in call.keywords):
        return True
    return any(value.kind in (Kind.NUMBER, Kind.CONTAINER) for value in args.positional[1:])


def is_whole(call: ir.Call, name: str, args: Args) -> bool:
    """Whether a reduction certainly takes all of the tensor."""
    if name not in REDUCTIONS or any(keyword not in _HARMLESS for keyword, _ in call.keywords):
        return False
    if any(isinstance(arg, ir.Wrapper) for arg in call.args):
        return False
    return len(args.positional) == (2 if name == "dist" else 1)


def stays_scalar(name: str, values: list[Val]) -> bool:
    """Whether a function of scalars and numbers gives a scalar."""
    return name in _ELEMENTWISE and all(
        value.has(SCALAR) or value.kind in (Kind.NUMBER, Kind.HOST) for value in values
    )


def is_reduced(call: ir.Call) -> bool:
    """Whether a loss function, or a criterion where it is made, is not told to leave a loss for each sample."""
    for name, value in call.keywords:
        if name is None or name == "reduce":
            return False
        if name == "reduction" and not (
            isinstance(value, ir.Const) and value.value in ("mean", "sum", "batchmean")
        ):
            return False
    return True
