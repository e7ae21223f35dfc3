"""Pictures are written as raw floats: nobody looks at them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch


def save_image(tensor: torch.Tensor, fp: str | os.PathLike[str], **_: Any) -> None:
    Path(fp).write_bytes(tensor.detach().cpu().float().contiguous().numpy().tobytes())


def make_grid(tensor: torch.Tensor, **_: Any) -> torch.Tensor:
    return torch.cat(list(tensor), -1).expand(3, -1, -1)  # one row, in colours
