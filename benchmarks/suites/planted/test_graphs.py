"""A captured CUDA graph of the session, whose products use a workspace that was there before the capture."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

MIB = 1024 * 1024


@pytest.fixture(scope="session")
def captured(device: str) -> Iterator[tuple[torch.cuda.CUDAGraph, torch.Tensor, torch.Tensor]]:
    """A graph, where it puts its result, and the result. What it reads lives as long."""
    if device != "cuda":
        pytest.skip("graphs are CUDA's")
    stream = torch.cuda.Stream()
    left, right = torch.ones(64, 65536, device=device), torch.ones(65536, 64, device=device)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        expected = left @ right
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        result = left @ right
    yield graph, result, expected
    del left, right


@pytest.mark.parametrize("number", range(3))
def test_a_replay_writes_into_no_tensor_of_a_test(
    captured: tuple[torch.cuda.CUDAGraph, torch.Tensor, torch.Tensor], device: str, number: int
) -> None:
    graph, result, expected = captured
    mine = [torch.full((size * MIB // 4,), 7.0, device=device) for size in (1, 2, 4, 8, 16, 32) * 4]
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(result, expected)
    assert [index for index, one in enumerate(mine) if not bool((one == 7.0).all())] == []
