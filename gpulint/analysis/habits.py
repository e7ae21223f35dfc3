"""What a file habitually does besides holding values, gathered when a rule asks for it and never before."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from gpulint.analysis.differentiating import WANTS_GRAD, libraries

if TYPE_CHECKING:
    from gpulint.analysis.alloc_conf import Setting
    from gpulint.analysis.averages import Average
    from gpulint.analysis.caches import Cache
    from gpulint.analysis.checkpoints import Load
    from gpulint.analysis.cleanup import IdleCleanup
    from gpulint.analysis.doubts import Doubts
    from gpulint.analysis.environment import LateSetting
    from gpulint.analysis.facts import FunctionFacts, Hold, HotCall
    from gpulint.analysis.guarding import Guarding
    from gpulint.analysis.hooks import HookHold, RepeatedHook
    from gpulint.analysis.memory_api import OldCall
    from gpulint.analysis.misuse import CreateGraph, GradModeMisuse, KeptGradients
    from gpulint.analysis.phases import PhaseEnd
    from gpulint.analysis.program import FileAnalysis
    from gpulint.analysis.snapshots import Snapshot
    from gpulint.analysis.syncs import ElementSync
    from gpulint.analysis.undetached import Undetached
    from gpulint.analysis.wasted import WastedForward


_DIFFERENTIATING = WANTS_GRAD | frozenset(
    "backward autograd zero_grad manual_backward training_step requires_grad optim optimizer optimizers grad Trainer".split()
)


class Habits:
    """Facts about one file that few rules need: each is computed at its first use."""

    def __init__(self, file: FileAnalysis, functions: list[FunctionFacts]) -> None:
        self._file = file
        self._functions = functions

    @cached_property
    def differentiates(self) -> bool:
        """Whether anything in the file trains or wants gradients: a backward, an optimizer, an attribution."""
        words = {word for evidence in self._file.evidence.values() for word in evidence.words}
        imported = self._file.module.imports.values()
        return (
            bool(words & _DIFFERENTIATING)
            or any(full.startswith(("torch.optim", "torch.autograd")) for full in imported)
            or bool(libraries(imported))
        )

    def against_cutting(self, hold: Hold) -> str:
        """Why a fix that cuts the graph of what is held would be unsafe; empty where it is proven safe."""
        from gpulint.analysis.cutting import against_cutting

        return against_cutting(self._file, self._functions, hold)

    @cached_property
    def doubts(self) -> Doubts:
        from gpulint.analysis.doubts import Doubts

        return Doubts(self._file)

    @cached_property
    def guarding(self) -> Guarding:
        from gpulint.analysis.guarding import Guarding

        return Guarding(self._file, self._functions)

    @cached_property
    def grad_modes(self) -> list[GradModeMisuse]:
        from gpulint.analysis.misuse import grad_mode_misuses

        return grad_mode_misuses(self._file)

    @cached_property
    def create_graphs(self) -> list[CreateGraph]:
        from gpulint.analysis.misuse import create_graphs

        return create_graphs(self._file, self._functions)

    @cached_property
    def kept_gradients(self) -> list[KeptGradients]:
        from gpulint.analysis.misuse import kept_gradients

        return kept_gradients(self._file)

    @cached_property
    def wasted(self) -> list[WastedForward]:
        from gpulint.analysis.wasted import wasted_forwards

        return wasted_forwards(self._file, self._functions)

    @cached_property
    def undetached(self) -> list[Undetached]:
        from gpulint.analysis.undetached import undetached

        return undetached(self._file, self._functions)

    @cached_property
    def loads(self) -> list[Load]:
        from gpulint.analysis.checkpoints import loads

        return loads(self._file)

    @cached_property
    def snapshots(self) -> list[Snapshot]:
        from gpulint.analysis.snapshots import snapshots

        return snapshots(self._file)

    @cached_property
    def idle_cleanups(self) -> list[IdleCleanup]:
        from gpulint.analysis.cleanup import idle_cleanups

        return idle_cleanups(self._file)

    @cached_property
    def phase_ends(self) -> list[PhaseEnd]:
        from gpulint.analysis.phases import phase_ends

        return phase_ends(self._file, self._functions)

    @cached_property
    def needless_waits(self) -> list[HotCall]:
        from gpulint.analysis.syncs import needless_waits

        return needless_waits(self._file, self._functions)

    @cached_property
    def element_syncs(self) -> list[ElementSync]:
        from gpulint.analysis.syncs import element_syncs

        return element_syncs(self._file, self._functions)

    @cached_property
    def settings(self) -> list[Setting]:
        from gpulint.analysis.alloc_conf import settings

        return settings(self._file)

    @cached_property
    def late_settings(self) -> list[LateSetting]:
        from gpulint.analysis.environment import late_settings

        return late_settings(self._file, self.settings)

    @cached_property
    def old_calls(self) -> list[OldCall]:
        from gpulint.analysis.memory_api import old_calls

        return old_calls(self._file)

    def asks_for_type(self, name: str) -> bool:
        from gpulint.analysis.memory_api import asks_for_type

        return asks_for_type(self._file, name)

    @cached_property
    def sets_autocast(self) -> bool:
        """Whether anything in the file sets for the whole process what autocast does."""
        return any(
            name.startswith(("set_autocast", "autocast_increment"))
            for evidence in self._file.evidence.values()
            for name in evidence.called
        )

    @cached_property
    def restores_its_own_way(self) -> bool:
        """Whether a class of the project has a `load_state_dict` of its own, which may keep tensors as they are."""
        own = re.compile(rb"def (?:_load_from_state_dict|load_state_dict|set_extra_state)\(")
        if any(
            own.search(f"def {name}(".encode())
            for cls in self._file.module.classes.values()
            for name in cls.methods
        ):
            return True
        project = self._file.project
        return project is not None and project.contains(self._file.filename, own)

    @cached_property
    def oldest_torch(self) -> tuple[int, int] | None:
        from gpulint.analysis.requirements import oldest_torch

        return oldest_torch(self._file.project, self._file.filename)

    @cached_property
    def newest_torch(self) -> tuple[int, int] | None:
        from gpulint.analysis.requirements import newest_torch

        return newest_torch(self._file.project, self._file.filename)

    @cached_property
    def hook_holds(self) -> list[HookHold]:
        from gpulint.analysis.hooks import hook_holds

        return hook_holds(self._file, self._functions)

    @cached_property
    def repeated_hooks(self) -> list[RepeatedHook]:
        from gpulint.analysis.hooks import repeated_hooks

        return repeated_hooks(self._file)

    @cached_property
    def averages(self) -> list[Average]:
        from gpulint.analysis.averages import averages

        return averages(self._file, self._functions)

    @cached_property
    def caches(self) -> list[Cache]:
        from gpulint.analysis.caches import caches

        return caches(self._file, self._functions)
