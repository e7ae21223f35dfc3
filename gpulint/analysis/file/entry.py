"""Is grad enabled when a function of the file begins, and who says so: its decorators, a framework, the file's callers."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gpulint.analysis.code import ir
from gpulint.analysis.code.outside import switched
from gpulint.analysis.file import gradmode
from gpulint.analysis.file.classes import ClassInfo
from gpulint.analysis.file.identities import Identities
from gpulint.analysis.file.runners import STARTING, is_command, started_by
from gpulint.analysis.project.scripts import console_scripts
from gpulint.analysis.torch import frameworks
from gpulint.analysis.torch.backward import runs_backward
from gpulint.analysis.values.values import Grad, Kind, Val

if TYPE_CHECKING:
    from gpulint.analysis.file.evidence import Evidence
    from gpulint.analysis.file.surroundings import Surroundings
    from gpulint.analysis.torch.names import Names
    from gpulint.analysis.values.state import State


class EntryModes(Identities):
    """The part of a file's analysis that knows the grad mode at each function's entry."""

    module: ir.Module
    filename: str
    project: Surroundings[Any] | None
    main: bool
    names: Names
    evidence: dict[ir.Function, Evidence]
    owners: dict[ir.Class, ClassInfo]
    states: dict[ir.Function, State]
    callers: dict[ir.Function, set[Grad]]

    if TYPE_CHECKING:

        def imported_value(self, qualified: str) -> Val | None: ...

    @cached_property
    def started(self) -> frozenset[ir.Function]:
        """The functions that something outside only starts, as the file's own body does: what command lines, processes and
        threads are given, commands by decorator, and the console scripts of the project."""
        found: set[ir.Function] = set()
        for function in self.module.functions:
            if any(is_command(item, self.names) for item in function.decorators):
                found.add(function)
            if self.evidence[function].called & STARTING:
                for _, call in ir.calls(function.body):
                    for given in started_by(call, self.names):
                        found |= self._named(given, function)
        scripts = console_scripts(self.project, self.filename) if self.main else ()
        return frozenset(found | {one for one in self.module.functions if one.qualname in scripts})

    def _named(self, expr: ir.Expr, where: ir.Function) -> set[ir.Function]:
        """The functions that `f`, or `self.f` of a method, means there."""
        if isinstance(expr, ir.Name):
            around = (self.module.body, where)
            return {
                f for f in self.module.functions if f.name == expr.id and f.cls is None and f.parent in around
            }
        own = isinstance(expr, ir.Attr) and isinstance(expr.base, ir.Name) and expr.base.id in ("self", "cls")
        method = where.cls.methods.get(expr.attr) if own and where.cls is not None else None  # type: ignore[attr-defined]
        return set() if method is None else {method}

    def class_of(self, function: ir.Function) -> ClassInfo | None:
        method = function.method
        return None if method is None or method.cls is None else self.owners.get(method.cls)

    def grad_at_entry(self, function: ir.Function) -> Grad:
        if function is self.module.body:
            return Grad.ENABLED
        decorated = self._decorated(function)
        if decorated is not None:
            return decorated
        by_framework = self._framework_grad(function)
        if by_framework is not None:
            return by_framework
        module_state = self.states.get(self.module.body)
        if module_state is not None and module_state.grad is not Grad.ENABLED:
            return module_state.grad
        if self._is_off_for_object(function):
            return Grad.DISABLED
        callers = self.callers.get(function) or self._callers_of_overridden(function)
        if callers and function in self.started:
            callers = callers | {Grad.ENABLED}
        if callers:
            return next(iter(callers)) if len(callers) == 1 else Grad.UNKNOWN
        if function.parent is not None and function.parent is not self.module.body:
            return self.grad_at_entry(function.parent)
        return Grad.ENABLED

    def _is_off_for_object(self, function: ir.Function) -> bool:
        """Whether the object that a method belongs to has switched grad off for the process before the method can run, and no
        method switches it on again: its constructor, what that calls, or what makes an attribute that the method uses."""
        info = self.class_of(function)
        if info is None or function.name == "__init__":
            return False
        methods = [method for one in info.ancestors() for method in one.cls.methods.values()]
        if not any("set_grad_enabled" in method.home.evidence[method].words for method in methods):
            return False
        modes = [mode for m in methods for s in ir.statements(m.body) if (mode := switched(s)) is not None]
        off = [method for method in methods if any(switched(s) is False for s in method.body)]
        return not any(modes) and any(
            method is not function and self._comes_first(method, function, methods) for method in off
        )

    @staticmethod
    def _comes_first(method: ir.Function, function: ir.Function, methods: list[ir.Function]) -> bool:
        begun = [one for one in methods if one.name == "__init__"]
        if method in begun or any(method.name in one.home.evidence[one].called for one in begun):
            return True
        made = _stored_by(method) - {attr for one in methods if one is not method for attr in _stored_by(one)}
        return bool(made & function.home.evidence[function].words)

    def _callers_of_overridden(self, function: ir.Function) -> set[Grad]:
        """How the file calls the methods of base classes that this one stands in for."""
        info = self.owners.get(function.cls) if function.cls is not None else None
        found: set[Grad] = set()
        for base in info.ancestors()[1:] if info is not None else ():
            overridden = base.cls.methods.get(function.name)
            if overridden is not None:
                found |= self.callers.get(overridden, set())
        return found

    def _decorated(self, function: ir.Function) -> Grad | None:
        result: Grad | None = None
        for decorator in function.decorators:
            path, last = gradmode.decorator_name(decorator)
            qualified = self.names.qualify(path) if path is not None else None
            call = decorator if isinstance(decorator, ir.Call) else None
            mode = gradmode.of_call(qualified, call)
            if mode is None and path is not None:
                mode = self._project_decorator(path)
                if mode is Grad.ENABLED and result is not None:
                    continue  # a wrapper that leaves grad mode alone, below one that sets it
            if (
                mode is None
                and last not in gradmode.NEUTRAL_DECORATORS
                and not (path or "").startswith(("app.", "click.", "pytest."))
                and (qualified or "").partition(".")[0] not in frameworks.NEUTRAL_LIBRARIES
            ):
                mode = Grad.UNKNOWN
            if mode is not None:
                result = mode
        return result

    def switches_grad_off(self, function: ir.Function) -> bool:
        """Whether a function of this file runs without grad, whoever calls it: by its decorators."""
        return bool(function.decorators) and self._decorated(function) is Grad.DISABLED

    def _project_decorator(self, path: str) -> Grad | None:
        """A decorator defined in this file: does its wrapper call the function under no_grad?"""
        for function in self.module.functions:
            if function.name == path and function.cls is None:
                words = self.evidence[function].words
                inner = [f for f in self.module.functions if f.parent is function]
                for other in inner:
                    words = words | self.evidence[other].words
                    if self._decorated(other) is Grad.DISABLED:
                        return Grad.DISABLED
                return Grad.DISABLED if words & {"no_grad", "inference_mode"} else Grad.ENABLED
        qualified = self.names.qualify(path)
        found = self.imported_value(qualified) if qualified is not None else None
        if found is not None and found.kind is Kind.FUNCTION and found.ref.home is not self:
            return found.ref.home._project_decorator(found.ref.name)  # type: ignore[no-any-return]
        return None

    def _framework_grad(self, function: ir.Function) -> Grad | None:
        info = self.class_of(function)
        if info is None:
            return None
        if info.is_lightning or (not info.is_module and "LightningModule" in str(info.base_names)):
            if function.name in frameworks.LIGHTNING_NO_GRAD:
                return Grad.DISABLED
            if function.name in frameworks.LIGHTNING_TRAIN:
                return Grad.ENABLED
        elif function.name in ("validation_step", "test_step", "predict_step") and (
            info.bases or info.base_names
        ):
            return Grad.UNKNOWN
        if info.is_hf_trainer and function.name in frameworks.HF_TRAINER_NO_GRAD:
            return Grad.DISABLED
        return None

    def guards_itself(self, function: ir.Function) -> bool:
        """Whether a function switches grad off somewhere in its body or around the whole of it."""
        home: EntryModes = function.home
        words = home.evidence[function].words
        return bool(words & {"no_grad", "inference_mode"}) or home.grad_at_entry(function) is Grad.DISABLED

    def framework_backward(self, function: ir.Function) -> bool:
        """Whether a framework calls backward on what this function returns."""
        info = self.class_of(function)
        if info is None:
            return False
        if function.name == "training_step" and (info.is_lightning or bool(info.base_names)):
            return not any(map(runs_backward, self.evidence[function].called))
        return function.name == "compute_loss" and any(name.endswith("Trainer") for name in info.base_names)

    def enter_mode(self, info: ClassInfo) -> Grad | None:
        enter = info.method("__enter__")
        if enter is None:
            return Grad.UNKNOWN
        words = enter.home.evidence[enter].words
        if words & {"no_grad", "inference_mode"}:
            return Grad.DISABLED
        if any(switched(statement) is False for statement in enter.body):
            return Grad.DISABLED
        return Grad.UNKNOWN if words & {"set_grad_enabled", "enable_grad"} else None


def _stored_by(method: ir.Function) -> set[str]:
    return {path.partition(".")[2] for path in method.home.evidence[method].stored}


def note_handed(values: Iterable[Val], grad: Grad, receivers: Iterable[ir.Function] | None) -> None:
    """Remember under which mode functions are handed to `receivers` as arguments: they run under the grad mode of whoever was
    given them; None for what cannot be seen.

    A receiver that switches grad off somewhere may do so around the call. One that cannot be seen says nothing more than
    the mode around it: with grad enabled that is nothing at all.
    """
    for value in values:
        if value.kind is not Kind.FUNCTION:
            continue
        home: EntryModes = value.ref.home
        mode = grad
        if receivers is None:
            if grad is Grad.ENABLED:
                continue
        elif any(receiver.home.guards_itself(receiver) for receiver in receivers):
            mode = Grad.DISABLED if grad is Grad.DISABLED else Grad.UNKNOWN
        home.callers.setdefault(value.ref, set()).add(mode)
