"""Which probe measures: the GPU's, or the host's where the script leaves the GPU alone."""

from __future__ import annotations

from typing import Any

from gpulint.runtime.child.session import Session


class DeviceChoice:
    """Made before each mark, until the script uses the GPU. `idle` is the GPU's probe as long as the host's stands in
    for it."""

    def __init__(self, session: Session) -> None:
        self.idle: Any = None
        self._session = session

    def check(self) -> None:
        """On a machine with a GPU that the script leaves alone, what it keeps is on the host."""
        session = self._session
        probe = session.probe
        if probe.name == "cuda-allocator" and session.options.device == "auto" and not probe.used():
            from gpulint.runtime.probes.host import HostProbe

            probe.on_first_use = self._use_cuda
            self.idle = probe
            host = HostProbe(session.frames)
            if probe.crests is not None:
                host.follow_peaks()
            host.start()
            host.adopt(parameters_on_device=True)
            self._switch(host)

    def _use_cuda(self) -> None:
        """The script has begun to use CUDA after all."""
        if self.idle is not None and not self._session.done:
            self._session.probe.stop()
            self._switch(self.idle)
            self.idle = None

    def _switch(self, probe: Any) -> None:
        """Measure with another probe from here on. Every series begins anew: their figures do not compare."""
        session = self._session
        probe.skip_to(len(session.marks))
        session.probe = session.lines.probe = probe
        session.forwards.allocated = probe.allocated
        for series in session.series.values():
            series.begin_anew()
