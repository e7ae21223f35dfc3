"""Watches steps inside the process that asks, for test suites and notebooks: no child, no script, no stop."""

from __future__ import annotations

import os

from gpulint.runtime.child.harness import Harness
from gpulint.runtime.record.result import End, Options, RankResult


class Watch:
    """A context in which steps are sampled and judged.

        with Watch(steps=20) as watch:
            for batch in batches:
                train(batch)
                watch.step()
        result = watch.result

    Optimizer steps and forwards are seen by themselves; the first `step()` makes the explicit steps the only
    ones. Reports what `gpulint verify` reports, for this process: `result` is final once the context has been
    left, which is when holders are looked for, so leave it while what may leak is still held. `device` is
    auto, cuda or cpu. More than `steps` steps are sampled if they come. Not reentrant, and for one thread.
    """

    def __init__(
        self, steps: int = 20, warmup: int | None = None, device: str = "auto", home: str | None = None
    ) -> None:
        told = {"steps": steps, "warmup": warmup, "device": device, "home": home or os.getcwd()}
        self.wanted = steps
        self.result: RankResult | None = None
        self._harness = Harness(Options.from_json(told), endless=True)

    def __enter__(self) -> Watch:
        self._harness.start()
        return self

    def step(self) -> None:
        """The end of one iteration."""
        self._harness.step()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.leave(anew=True, failed=kind is not None and not issubclass(kind, GeneratorExit))

    @property
    def sampled(self) -> int:
        """The steps sampled so far."""
        return self._harness.session.sampled

    def leave(self, anew: bool = True, failed: bool = False) -> None:
        """What leaving the context does. Not `anew`: what was judged on the way stands, because what leaked
        may be gone by now, with the function that held it."""
        harness = self._harness
        harness.look_at_end((), anew)
        reason = "raised" if failed else "finished"
        said = f"{reason} after {harness.session.steps} steps"
        self.result = harness.result(End.from_json({"reason": reason, "message": said}))
        harness.stop_watching()
        if harness.probe is not None:
            harness.probe.leave()
