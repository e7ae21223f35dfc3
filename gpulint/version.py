"""The version, read by the package, the build and what is written into reports."""

from typing import Final

__version__: Final = "0.1.0"
