"""A model of torch's CUDA caching allocator (torch 2.4 to 2.13), event by event, without a GPU.

It makes the same decisions as the C++: rounding, pools, best fit, splitting, merging, oversize blocks, age-based
collection, the order of attempts when the driver has no more, and expandable segments. Fed with the allocations
and frees of a program it gives allocated, reserved and retries under any allocator settings.

Not modelled: frees that wait for events of other streams, private pools of CUDA graphs, and the driver's own
fragmentation (it has none: it maps physical pages).
"""

from gpulint.allocator.model import Allocator, OutOfMemory, Piece
from gpulint.allocator.settings import LARGE_SEGMENT, MIB, Settings, parse_settings

__all__ = ["LARGE_SEGMENT", "MIB", "Allocator", "OutOfMemory", "Piece", "Settings", "parse_settings"]
