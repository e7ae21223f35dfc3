"""A stand-in for torchvision: synthetic images instead of downloads, and the few parts public scripts use.

`STANDIN_TRAIN` and `STANDIN_TEST` in the environment are the sizes of the datasets.
"""

from . import datasets, models, transforms, utils

__all__ = ["datasets", "models", "transforms", "utils"]
