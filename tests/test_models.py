"""The transfer table against torch itself: each operation that it has a row for runs on small tensors, and what the row says of the
graph, of storage and of the host is what happens. `DISAGREE` lists where the two differ, with a reason: nothing."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from gpulint.analysis.models.table import Row, table

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")  # which torch.testing imports

DISAGREE: dict[str, str] = {}
# Rows whose result depends on more than the operation: a type, a device, whether it is one already.
CONDITIONAL = frozenset(
    "to type contiguous reshape flatten float double half bfloat16 type_as mT clone real expand_as".split()
)


def operations() -> Iterator[Any]:
    from torch.testing._internal.common_methods_invocations import op_db

    known = table().knows("tensor")
    seen: set[str] = set()
    for operation in op_db:
        name = operation.name
        if name in known and name not in seen and torch.float64 in operation.supported_dtypes("cpu"):
            seen.add(name)
            yield operation


def outputs(given: Any) -> list[Any]:
    if isinstance(given, torch.Tensor):
        return [given]
    return [one for part in given for one in outputs(part)] if isinstance(given, (tuple, list)) else []


def results(operation: Any) -> Iterator[tuple[Any, list[Any]]]:
    samples = operation.sample_inputs("cpu", torch.float64, requires_grad=operation.supports_autograd)
    for sample in itertools.islice(samples, 4):
        if isinstance(sample.input, torch.Tensor) and sample.input.numel():
            if not operation.supports_autograd and sample.input.is_floating_point():
                sample.input.requires_grad_()
            yield sample.input, outputs(operation(sample.input, *sample.args, **sample.kwargs))


def contradiction(row: Row, given: Any, made: list[Any]) -> str:
    """What a row says otherwise than a run of its operation; empty where they agree."""
    with_graph = [one for one in made if one.requires_grad]
    if row.graph == "cuts" and with_graph:
        return "the row says that it cuts the graph, and a result requires grad"
    if row.graph == "keeps" and made and given.requires_grad and not with_graph:
        return "the row says that it keeps the graph, and no result requires grad"
    shares = [
        one
        for one in made
        if one.numel() and one.untyped_storage().data_ptr() == given.untyped_storage().data_ptr()
    ]
    if shares and not row.view and row.gives == "tensor":
        return "the row says nothing of a view, and a result shares its storage"
    return ""


@pytest.mark.slow
def test_the_table_says_what_torch_does() -> None:
    wrong: dict[str, str] = {}
    count = 0
    for operation in operations():
        if operation.name in CONDITIONAL:
            continue
        row = table().method("tensor", operation.name)
        for given, made in results(operation):
            count += 1
            said = contradiction(row, given, made)
            if said:
                wrong[operation.name] = said
    assert count > 100
    assert {name: said for name, said in wrong.items() if name not in DISAGREE} == {}


@pytest.mark.slow
def test_what_is_not_named_keeps_the_graph() -> None:
    """`*`: of the operations that the table does not name, those that cut the graph are the exceptions it lists elsewhere."""
    from torch.testing._internal.common_methods_invocations import op_db

    named = table().knows("tensor")
    functions = table().knows("torch")
    cuts = {
        operation.name
        for operation in op_db
        if "." not in operation.name
        and not operation.supports_autograd
        and torch.float64 in operation.supported_dtypes("cpu")
        and hasattr(torch.Tensor, operation.name)
        and operation.name not in named
        and operation.name not in functions
    }
    assert sorted(cuts - UNNAMED) == []


# Of integers alone; made of nothing that is computed; or with a graph that a backward does not go through, or not for all inputs.
UNNAMED = frozenset(
    "__rand__ __ror__ __rxor__ frexp empty_like geqrf igamma igammac resize_ resize_as_ bmm "
    "floor_divide heaviside nextafter histogram narrow_copy".split()
)
