"""What tests leave behind: each says in its docstring what the plugin has to find."""

from __future__ import annotations

import torch
from torch import nn

MIB = 1024 * 1024
KEPT: list[torch.Tensor] = []
GRAPHS: dict[str, torch.Tensor] = {}
NETWORKS: list[nn.Module] = []


class Cycle:
    """Garbage that only the collector can let go of."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        self.me = self


def mib(number: int, device: str) -> torch.Tensor:
    return torch.zeros(number * MIB // 4, device=device)


def test_product_makes_workspaces(network: nn.Module, device: str) -> None:
    """Nothing: cuBLAS' workspaces are the library's, and the network is the session's."""
    network(torch.ones(64, 1024, device=device)).sum().backward()
    network.zero_grad(set_to_none=True)


def test_leaves_list(device: str) -> None:
    """8 MiB in the global list KEPT."""
    KEPT.append(mib(8, device))


def test_leaves_garbage(device: str) -> None:
    """Nothing: garbage is collected first."""
    Cycle(mib(16, device))


def test_leaves_graph(module_network: nn.Module, device: str) -> None:
    """A loss with its graph: 512 B and what the graph keeps, in GRAPHS."""
    GRAPHS["loss"] = torch.relu(module_network(torch.ones(2048, 1024, device=device))).sum()


def test_fails_and_leaves_nothing(device: str) -> None:
    """Nothing, though the traceback held 32 MiB."""
    big = mib(32, device)
    assert big is None


def test_fills_the_shelf(shelf: dict[str, torch.Tensor], device: str) -> None:
    """Nothing: the session's fixture keeps it."""
    shelf["x"] = mib(2, device)


def test_keeps_the_network(module_network: nn.Module) -> None:
    """Nothing now; 2 MiB when the module's fixture has ended, because this list keeps it."""
    NETWORKS.append(module_network)
