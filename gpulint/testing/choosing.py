"""Which device a suite is measured on."""

from __future__ import annotations

import os

import torch

from gpulint.runtime.observing.machine import has_cuda
from gpulint.runtime.probes.frames import Frames
from gpulint.testing.cpu import Cpu
from gpulint.testing.devices import Device
from gpulint.testing.gpu import Gpu


def choose(asked: str, root: str) -> Device:
    """The device for auto, cuda or cpu; `root` is the folder whose code is the user's."""
    frames = Frames(root)
    frames.foreign = (os.path.dirname(os.path.abspath(torch.__file__)) + os.sep,)
    return Gpu(frames) if asked == "cuda" or (asked == "auto" and has_cuda()) else Cpu(frames)
