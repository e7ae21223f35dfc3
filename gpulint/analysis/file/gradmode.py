"""Is grad enabled at this statement, and why."""

from __future__ import annotations

from gpulint.analysis.code import ir
from gpulint.analysis.torch.names import ENABLE_GRAD, NEUTRAL_CONTEXTS, NO_GRAD, SET_GRAD
from gpulint.analysis.values.constants import NO_CONSTANTS, Constants, truth
from gpulint.analysis.values.values import Grad

# Decorators, by last name, known to leave grad mode alone.
NEUTRAL_DECORATORS = frozenset(
    (
        "staticmethod classmethod property cached_property abstractmethod override overload final wraps "
        "contextmanager main command option argument group pass_context hydra_main lru_cache cache compile "
        "jit script ignore unused export record fixture parametrize mark skip skipif setter getter deleter "
        "dataclass register register_module register_model task flow find_executable_batch_size timer timeit "
        "app callback function cli asynccontextmanager typechecked beartype jaxtyped deprecated require_torch "
        "retry main_process_only rank_zero_only on_main_process profile autocast custom_fwd custom_bwd "
        "torch_required add_start_docstrings add_start_docstrings_to_model_forward replace_return_docstrings "
        "can_return_tuple auto_docstring cache_data cache_resource catch automain GPU remote route post get put websocket "
        "on_message shared_task configurable wrap hydra_runner bind validate_call cached memoize disable track_emissions "
        "requires_module requires_backends api component tool"
    ).split()
)


def of_call(qualified: str | None, call: ir.Call | None, constants: Constants = NO_CONSTANTS) -> Grad | None:
    """The grad mode that entering `torch.no_grad()` and its like sets; None where the name is no such thing. `constants`
    are the parameters whose values are known."""
    if qualified is None:
        return None
    argument = call.argument(0, "mode") if call is not None else None
    if qualified in NO_GRAD:
        if not qualified.endswith("inference_mode") or argument is None:
            return Grad.DISABLED
        return _MODES[truth(argument, constants)]
    if qualified in ENABLE_GRAD:
        return Grad.ENABLED
    return _MODES[truth(argument, constants)] if qualified in SET_GRAD else None


_MODES = {True: Grad.ENABLED, False: Grad.DISABLED, None: Grad.UNKNOWN}


def is_neutral_context(expr: ir.Expr) -> bool:
    """Whether a context manager, by its last name, is of a kind that never touches grad mode."""
    if isinstance(expr, ir.Call):
        return expr.method in NEUTRAL_CONTEXTS
    if isinstance(expr, ir.Attr):
        return expr.attr in NEUTRAL_CONTEXTS
    return isinstance(expr, ir.Name) and expr.id in NEUTRAL_CONTEXTS


def decorator_name(decorator: ir.Expr) -> tuple[str | None, str]:
    """The dotted path and the last name of a decorator, called or not."""
    target = decorator.func if isinstance(decorator, ir.Call) else decorator
    last = target.attr if isinstance(target, ir.Attr) else target.path or ""
    return target.path, last


def is_context_manager(function: ir.Function) -> bool:
    """Whether a generator is decorated with contextlib's contextmanager."""
    return any(
        decorator_name(item)[1] in ("contextmanager", "asynccontextmanager") for item in function.decorators
    )
