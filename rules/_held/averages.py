"""What an average costs that takes in what has a graph."""

from gpulint.rule import Cost

WEIGHTS = Cost(
    "host memory that grows with every update",
    "47.8 KiB a step, and hardly any time, for the weights of an 8-layer MLP; H200, torch 2.11",
)
CHAIN = Cost(
    "host memory that grows with every update, and every activation where no backward frees them",
    "23.3 KiB a step of host memory for an 8-layer MLP; H200, torch 2.11",
)
