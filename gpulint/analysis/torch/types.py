"""torch's types of numbers, by how they are spelt, and what gives a network another one."""

from __future__ import annotations

from typing import Final

# Types that take less memory than a network's own, which is float32 where nobody says otherwise.
NARROW: Final = frozenset(
    f"torch.{name}"
    for name in "half float16 bfloat16 float8_e4m3fn float8_e5m2 HalfTensor BFloat16Tensor".split()
)
# Methods of a network that make it narrower, and those that take the type as an argument.
NARROWING: Final = frozenset({"half", "bfloat16"})
TAKES_TYPE: Final = frozenset({"to", "type"})
# By these a loader is told the type of the weights, or how they are packed.
TYPE_OF_WEIGHTS: Final = frozenset(
    "torch_dtype dtype precision load_in_8bit load_in_4bit quantization_config use_fp16 half variant".split()
)
# What may be done to a network between two of its moves, without its numbers being computed with.
SETS_UP: Final = frozenset("eval train requires_grad_ cuda to load_state_dict freeze".split())
