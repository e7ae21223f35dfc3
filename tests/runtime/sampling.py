"""A harness around a block of a test's own process, without a parent that would be told anything."""

import os

from gpulint.runtime.child.harness import Harness
from gpulint.runtime.record.options import Options
from gpulint.runtime.record.result import RankResult


class Watch:
    """A context in which steps are sampled and judged, for this process: `result` is there once it has been left, which is when holders
    are looked for. `device` is auto, cuda or cpu. More than `steps` steps are sampled if they come."""

    def __init__(
        self, steps: int = 20, warmup: int | None = None, device: str = "auto", home: str | None = None
    ) -> None:
        told = {"steps": steps, "warmup": warmup, "device": device, "home": home or os.getcwd()}
        self.result: RankResult | None = None
        self._harness = Harness(Options.from_json(told), endless=True)

    def __enter__(self) -> "Watch":
        self._harness.start()
        return self

    def step(self) -> None:
        """The end of one iteration."""
        self._harness.step()

    def __exit__(self, *_: object) -> None:
        self.result = self._harness.leave()
