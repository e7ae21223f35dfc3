"""A stand-in for requests: every address answers with the file of that name in the working directory."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any


class Response:
    """An answer whose body is a local file."""

    def __init__(self, path: Path) -> None:
        self.raw = path.open("rb")

    def __enter__(self) -> Response:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.raw.close()


def get(url: str, **_: Any) -> Response:
    return Response(Path(url.rsplit("/", 1)[-1]))
