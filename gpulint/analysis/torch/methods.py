"""Methods by their names, where all that is known of an object is what is asked of it."""

from __future__ import annotations

from typing import Final

# What a module gives itself back from.
GIVES_ITSELF: Final = frozenset(
    "to cuda cpu half float double bfloat16 type eval train requires_grad_ module".split()
)
# What makes of a network one that is the same, but for where it runs.
WRAPS: Final = frozenset("DataParallel DistributedDataParallel DDP deepcopy compile".split())

# What has no graph, whatever tensor it is asked of.
NO_GRAPH: Final = frozenset(
    "detach item tolist numpy size dim numel argmax argmin argsort long int bool stop_gradient".split()
)

# How a container takes one thing more.
ADDING: Final = frozenset("append extend insert appendleft add".split())
