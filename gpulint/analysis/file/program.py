"""One file: its functions and classes brought together, and what each name, class and parameter stands for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from gpulint.analysis.code import ir
from gpulint.analysis.code.reading import chooses_result
from gpulint.analysis.code.statics import mark_statics
from gpulint.analysis.file.calls.effort import Effort
from gpulint.analysis.file.calls.sites import CallSite, CallSites
from gpulint.analysis.file.classes import ClassInfo
from gpulint.analysis.file.entry import EntryModes
from gpulint.analysis.file.evidence import Evidence
from gpulint.analysis.file.facts import FunctionFacts, Keep
from gpulint.analysis.file.summaries import Summary
from gpulint.analysis.file.surroundings import Surroundings
from gpulint.analysis.file.test_code import is_test_file
from gpulint.analysis.file.weights.parameters import Weights, runs_by_itself, weights_of
from gpulint.analysis.torch import frameworks
from gpulint.analysis.torch.names import GRAD_SWITCHES, Names
from gpulint.analysis.values.constants import Constants
from gpulint.analysis.values.state import State
from gpulint.analysis.values.values import (
    GUARDED,
    HOST,
    LOADER,
    NO_TOKENS,
    OPTIMIZER,
    PLAIN,
    UNKNOWN,
    Grad,
    Kind,
    Site,
    Tokens,
    Val,
    join,
)

_ROLES = frozenset(
    {Kind.MODULE, Kind.OPTIMIZER, Kind.LOADER, Kind.INSTANCE, Kind.FUNCTION, Kind.CLASS, Kind.QUALIFIED}
)


_TORCH = frozenset(
    "torch torchvision lightning pytorch_lightning accelerate transformers deepspeed timm".split()
)

# Imported from elsewhere than torch, these are another library's: its `backward` is none of torch's.
_TENSOR_NAMES = frozenset({"Tensor", "Variable", "Parameter", "Module"})


class _EvidenceByFunction(dict[ir.Function, Evidence]):
    """The evidence of this file's functions; a function of another file brings its own."""

    def __missing__(self, function: ir.Function) -> Evidence:
        return function.home.evidence[function]  # type: ignore[no-any-return]


class FileAnalysis(EntryModes):
    """What is known of a file while its functions are followed."""

    def __init__(
        self,
        module: ir.Module,
        filename: str,
        project: Surroundings[FileAnalysis] | None = None,
        main: bool = False,
    ) -> None:
        super().__init__()
        mark_statics(module)
        self.module = module
        self.filename = filename
        self.project = project
        self.main = main
        self._effort = Effort()  # of a file alone
        self.imported: dict[str, Val | None] = {}
        for function in module.functions:
            function.home = self
        self.names = Names(module.imports)
        self.evidence = _EvidenceByFunction({function: Evidence(function) for function in module.functions})
        self.call_sites = CallSites(self.evidence)
        self.classes = self._classes()
        self.owners = {info.cls: info for info in self.classes.values()}
        for function in module.functions:
            if self.framework_backward(function):
                self.evidence[function].backward_by_return(function)
        self.uses_torch = any(full.split(".")[0] in _TORCH for full in module.imports.values())
        if not self.uses_torch and "torch" in self.names.imports:
            self.uses_torch = any("torch" in evidence.words for evidence in self.evidence.values())
        if (
            not module.imports
        ):  # a snippet, as documents and questions show them; or an autograd of somebody's own
            self.uses_torch = not any(function.name == "backward" for function in module.functions)
        self.other_autograd = not self.uses_torch and any(
            full.rsplit(".", 1)[-1] in _TENSOR_NAMES for full in module.imports.values()
        )
        self.shadowed: frozenset[str] = frozenset()
        self.record = False
        self.states: dict[ir.Function, State] = {}
        self.summaries: dict[ir.Function, Summary] = {}
        self.summaries_for: dict[tuple[ir.Function, Grad | None, frozenset[tuple[str, object]]], Summary] = {}
        self.running: set[ir.Function] = set()
        self.facts: dict[ir.Function, FunctionFacts] = {}
        self.roles: dict[ir.Function, dict[str, Val]] = {}
        self.callers: dict[ir.Function, set[Grad]] = {}
        self.globals: dict[str, Val] = {}
        self.called_from: dict[ir.Function, set[ir.Function]] = {}
        self.called_in_data_loop: set[ir.Function] = set()
        self.leaf = Site(None, "leaf", None, None)
        self.evaluating: set[Site] = set()
        self.results_of_calls: dict[Site, set[Site]] = {}  # of a graph, what calls of its function give
        self.freed: Tokens = NO_TOKENS
        self.freed_by: dict[Any, set[ir.Function]] = {}
        self.returned: Tokens = NO_TOKENS
        self.escaped: Tokens = NO_TOKENS
        self.stored: Tokens = NO_TOKENS
        self.read: Tokens = NO_TOKENS
        self.impossible: Tokens = NO_TOKENS

    def release(self) -> None:
        """Let go of everything, for whoever has asked the last question: functions and what is known of them name each other,
        and waiting for the garbage collector to find that out costs a third of the time of a lint."""
        functions = [self.module.body, *self.module.functions]
        self.__dict__.clear()
        for function in functions:
            function.home = function.parent = function.cls = None

    @property
    def effort(self) -> Effort:
        """What is spent on the file that is linted, and kept for it: the same for all files of its project."""
        return self._effort if self.project is None else self.project.effort

    def calls_named(self, name: str) -> Sequence[CallSite]:
        """The calls of the file whose last name this is; going through them is counted."""
        found = self.call_sites.calls.get(name, ())
        self.effort.draw(1 + sum(ir.size(site.caller) for site in found))
        return found

    def _classes(self) -> dict[str, ClassInfo]:
        classes = {name: ClassInfo(cls, self.names) for name, cls in self.module.classes.items()}
        for info in classes.values():
            info.home = self
            info.link(classes)
            if self.main:
                self.link_imported(info)
            for method in info.cls.methods.values():
                info.learn(method, self.evidence[method])
        for _ in range(3):
            for info in classes.values():
                info.inherit()
        return classes

    def link_imported(self, info: ClassInfo) -> None:
        """Add the bases that stand in other files of the project, where what is in the class does not say what it is."""
        if not info.is_module:
            info.bases = self.bases_of(info)
            info.inherit()

    def bases_of(self, info: ClassInfo) -> list[ClassInfo]:
        """The bases of a class of this file, with those that stand in other files of the project."""
        found = list(info.bases)
        for base in info.cls.bases:
            if base.path is None or base.path in self.module.classes:
                continue
            qualified = self.names.qualify(base.path)
            value = self.imported_value(qualified) if qualified is not None else self.through_star(base.path)
            if value is not None and value.kind is Kind.CLASS and value.ref not in found:
                found.append(value.ref)
        return found

    def prepare(self, info: ClassInfo) -> None:
        """Learn the attributes of a class of this file for another file that uses it."""
        if info.prepared:
            return
        info.prepared = True
        self.link_imported(info)
        for name, method in info.cls.methods.items():
            if name == "__init__" or self.evidence[method].stored:
                self.summary(method)

    def top_level(self, name: str) -> Val | None:
        """What a dotted name of one or two parts denotes at the top of this file, for another file."""
        head, _, attr = name.partition(".")
        value = self._defined(head)
        if value is None and head in self.evidence[self.module.body].assigned:
            self.summary(self.module.body)
            value = self.states[self.module.body].vars.get(head)
            if value is not None and value.kind not in _ROLES:
                value = None
        if value is None or not attr:
            return value
        if value.kind in (Kind.CLASS, Kind.INSTANCE):
            method = value.ref.method(attr)
            return None if method is None else Val(Kind.FUNCTION, ref=method)
        return None

    @cached_property
    def loss_makers(self) -> frozenset[str]:
        """Callables that somewhere in the file make what backward is called on: given a graph, they give one."""
        return frozenset(path for evidence in self.evidence.values() for path in evidence.loss_makers())

    @cached_property
    def function_names(self) -> frozenset[str]:
        """The names of the file's functions, methods left out."""
        return frozenset(function.name for function in self.module.functions if function.cls is None)

    @cached_property
    def detachers(self) -> frozenset[str]:
        """Names of the file's functions that detach what they are given."""
        return frozenset(
            f.name
            for f, evidence in self.evidence.items()
            if evidence.words & {"detach", "detach_"} and f.params
        )

    # --- what following the file's functions tells ------------------------------------------------------------------

    def summary(self, function: ir.Function) -> Summary | None:
        """What a function does for its callers; None while it is being followed (recursion)."""
        raise NotImplementedError

    def summary_for(self, function: ir.Function, caller: Grad, constants: Constants) -> Summary | None:
        """The summary for a caller with this grad mode, where callers with and without grad share the function, that gives
        these constants to its parameters."""
        raise NotImplementedError

    def may_switch_grad(self, function: ir.Function) -> bool:
        """Whether a function, or one of the file's that it calls, says anything about grad mode: then what its flags are
        may decide it."""
        evidence = self.evidence[function]
        return bool(evidence.words & GRAD_SWITCHES or evidence.called & self._switching)

    def flags_choose_result(self, function: ir.Function) -> bool:
        """Whether a parameter of a function decides which of its `return`s is taken."""
        return function in self._choosing

    @cached_property
    def _choosing(self) -> frozenset[ir.Function]:
        return frozenset(filter(chooses_result, self.module.functions))

    @cached_property
    def _switching(self) -> frozenset[str]:
        """The names of the functions of the file that say anything about grad mode."""
        return frozenset(f.name for f, evidence in self.evidence.items() if evidence.words & GRAD_SWITCHES)

    @property
    def function_facts(self) -> list[FunctionFacts]:
        """The facts of those functions that were followed, in the order of the source."""
        return [self.facts[function] for function in self.module.functions if function in self.facts]

    @cached_property
    def is_test(self) -> bool:
        return is_test_file(
            self.module, self.project.within(self.filename) if self.project else self.filename
        )

    # --- names ---------------------------------------------------------------------------------------------------

    def method(self, info: ClassInfo, name: str) -> ir.Function | None:
        return info.method(name) if isinstance(info, ClassInfo) else None

    def attr_value(self, info: ClassInfo, name: str) -> Val:
        if not isinstance(info, ClassInfo):
            return UNKNOWN
        for part in info.ancestors():
            if part.home is not self:
                part.home.prepare(part)
        return info.attr(name)

    def free_name(self, function: ir.Function, name: str) -> Val:
        """A name that is not local: from the enclosing functions, then the module, then the imports."""
        current = function.parent
        while current is not None:
            state = self.states.get(current)
            if state is not None and name in state.vars:
                value = state.vars[name]
                shared = self.globals.get(name)
                return value if shared is None or current is not self.module.body else join(value, shared)
            current = current.parent
        if name in self.globals:
            return self.globals[name]
        return self._top_level(name)

    def _top_level(self, name: str) -> Val:
        defined = self._defined(name)
        if defined is not None:
            return defined
        qualified = self.names.qualify(name)
        if qualified is not None:
            imported = self.imported_value(qualified)
            return imported if imported is not None else Val(Kind.QUALIFIED, ref=qualified)
        return self.through_star(name)

    def through_star(self, name: str) -> Val:
        """What `from tools import *` brings along of the project's own."""
        for local, module in self.module.imports.items():
            if local.startswith("*"):
                found = self.imported_value(f"{module}{name}" if module.endswith(".") else f"{module}.{name}")
                if found is not None:
                    return found
        return UNKNOWN

    def _defined(self, name: str) -> Val | None:
        for function in self.module.functions:
            if function.qualname == name:
                return Val(Kind.FUNCTION, ref=function)
        return Val(Kind.CLASS, ref=self.classes[name]) if name in self.classes else None

    def imported_value(self, qualified: str) -> Val | None:
        """A first-party function or class behind a qualified name; None where it cannot be resolved."""
        if self.project is None:
            return None
        if qualified not in self.imported:
            self.imported[qualified] = self.project.value(self.filename, qualified)
        return self.imported[qualified]

    def treated_as_module(self, function: ir.Function, path: str) -> bool:
        """Whether some function that shares this name treats it as an nn.Module."""
        if not self._is_treated(function, path):
            return False
        info = self.owners.get(function.cls) if function.cls is not None and function.params else None
        own, _, attr = path.partition(".")
        return info is None or own != function.params[0].name or not info.holds_functions(attr)

    def _is_treated(self, function: ir.Function, path: str) -> bool:
        root, _, rest = path.partition(".")
        for scope in function.scopes():
            evidence = self.evidence[scope]
            if path in evidence.modules:
                return True
            if rest and scope.cls is not None and scope.params and scope.params[0].name == root:
                info = self.owners.get(scope.cls)
                return info is not None and rest in info.modules
            if any(param.name == root for param in scope.params):
                return not rest and path in self._module_parameters
            if root in evidence.assigned:
                return False
        return False

    @cached_property
    def _module_parameters(self) -> frozenset[str]:
        """Names that are parameters of several functions of the file, one of which treats its own as a module:
        `encoder` of `evaluate(encoder, …)` beside `train(encoder, …)`, which calls `encoder.parameters()`."""
        found: dict[str, bool] = {}
        for function, evidence in self.evidence.items():
            for param in function.params:
                known = param.name in evidence.modules and param.name != "self"
                found[param.name] = found.get(param.name, False) or known
        return frozenset(name for name, known in found.items() if known)

    @cached_property
    def thaws(self) -> bool:
        """Whether any function of the file makes the parameters of a network require grad again."""
        return any(evidence.thawed - {"self"} for evidence in self.evidence.values())

    def is_frozen(self, function: ir.Function, path: str) -> bool:
        rest = path.partition(".")[2]
        for scope in function.scopes():
            evidence = self.evidence[scope]
            if path in evidence.frozen:
                return path not in evidence.thawed
            if rest and scope.cls is not None:
                info = self.owners.get(scope.cls)
                return info is not None and rest in info.frozen and rest not in info.thawed
        return False

    def backward_attribute(self, function: ir.Function, path: str) -> bool:
        info = self.class_of(function)
        root, _, rest = path.partition(".")
        return (
            info is not None
            and bool(rest)
            and rest in info.backward
            and bool(function.params)
            and function.params[0].name == root
        )

    def store_global(self, name: str, value: Val) -> None:
        known = self.globals.get(name)
        self.globals[name] = value if known is None else join(known, value)

    # --- parameters ----------------------------------------------------------------------------------------------

    def note_call(self, function: ir.Function, given: dict[str, Val], grad: Grad) -> None:
        """Remember how the file itself calls a function: which roles it hands over, under which grad mode."""
        self.callers.setdefault(function, set()).add(grad)
        roles = self.roles.setdefault(function, {})
        for name, value in given.items():
            kept = value if value.kind in _ROLES else UNKNOWN
            known = roles.get(name)
            roles[name] = (
                kept
                if known is None
                else known
                if kept is UNKNOWN
                else kept
                if known is UNKNOWN
                else join(known, kept)
            )

    def note_overrides(self, info: ClassInfo, name: str, grad: Grad) -> None:
        """`self.validate()` in a base class calls the methods of that name of its subclasses."""
        for other in self.classes.values():
            if other is not info and name in other.cls.methods and info in other.ancestors():
                self.note_call(other.cls.methods[name], {}, grad)

    def param_value(self, function: ir.Function, param: ir.Param) -> Val | None:
        known = self.roles.get(function, {}).get(param.name)
        if known is not None and known.kind in _ROLES:
            return known
        if (made := self._default_module(param)) is not None:
            return made
        if param.annotation is not None:
            return self.annotated(param.annotation)
        # `def run(trainer, …)` beside `class Trainer`: the file has one thing of that name.
        named = self._classes_by_word.get(param.name.replace("_", "").lower())
        return self.instance_of(named) if named is not None else None

    def _default_module(self, param: ir.Param) -> Val | None:
        """The module of the project that a parameter has for its default: `metric=Accuracy(k=1)`."""
        made = param.default
        if not isinstance(made, ir.Call) or not isinstance(made.func, ir.Name):
            return None
        value = self._top_level(made.func.id)
        known = value.kind is Kind.CLASS and value.ref.is_module
        return self.instance_of(value.ref) if known else None

    def instance_of(self, info: ClassInfo, made: ir.Call | None = None) -> Val:
        """An object of the class, or of one below it; `made` is the call that makes one of this very class."""
        if not info.is_module:
            return Val(Kind.INSTANCE, ref=info)
        exact = made is not None or not self._is_base(info)
        plain = exact and runs_by_itself(info) and weights_of(info, made) is Weights.NONE
        forward = info.method("forward") if exact else None
        guarded = forward is not None and forward.home.switches_grad_off(forward)
        flags = (PLAIN if plain else 0) | (GUARDED if guarded else 0)
        return Val(Kind.MODULE, flags=info.module_flags | flags, ref=info)

    def _is_base(self, info: ClassInfo) -> bool:
        """Whether a class of the file, or of the project as far as that is known, is made of another."""
        below = any(info in one.bases for one in self.classes.values())
        return below or (self.project is not None and bool(self.project.derived(info.cls.name)))

    @cached_property
    def _classes_by_word(self) -> dict[str, ClassInfo]:
        return {info.cls.name.lower(): info for info in self.classes.values()}

    def annotated(self, annotation: ir.Expr) -> Val | None:
        """What a type annotation proves: a module, an optimizer, a loader, a class of the file."""
        path = (
            annotation.value
            if isinstance(annotation, ir.Const) and isinstance(annotation.value, str)
            else annotation.path
        )
        if isinstance(annotation, ir.Op) and annotation.op == "|":
            return self.annotated(annotation.operands[0])
        if isinstance(annotation, ir.Sub) and (annotation.base.path or "").endswith("Optional"):
            return self.annotated(annotation.index)
        if not path:
            return None
        if path in self.classes:
            return self.instance_of(self.classes[path])
        qualified = self.names.qualify(path) or path
        last = qualified.rsplit(".", 1)[-1]
        if qualified == "torch.nn.Module" or (
            qualified.startswith("torch.nn.") and last[:1].isupper() and last != "Parameter"
        ):
            return Val(Kind.MODULE)
        if last in ("PreTrainedModel", "LightningModule"):
            return Val(Kind.MODULE)
        if qualified in frameworks.FROZEN_PARTS:
            return Val(Kind.UNKNOWN, ref=qualified)
        if last == "Pipeline" and qualified.startswith("transformers"):
            return HOST
        if qualified.startswith("torch.optim") and last == "Optimizer":
            return OPTIMIZER
        if last == "DataLoader":
            return LOADER
        return None

    def reset_anywhere(self, path: str) -> bool:
        """Whether any function of the file empties or replaces the attribute, constructors aside."""
        attr = path.rpartition(".")[2].partition("[")[0]
        return any(
            reset.rpartition(".")[2].partition("[")[0] == attr
            for function in self.module.functions
            if function.name != "__init__"
            for reset in self.resets_of(function)
        )

    def runs_per_step(self, function: ir.Function) -> bool:
        """Whether a function without a loop of its own is one step: it runs a backward or an optimizer itself."""
        summary = self.summaries.get(function)
        if summary is None or function is self.module.body:
            return False
        info = self.class_of(function)
        if (
            info is not None
            and function.name in frameworks.PER_BATCH_HOOKS
            and (info.is_lightning or info.is_hf_trainer)
        ):
            return True
        return summary.steps > 0 or self.framework_backward(function)

    def located(self, keep: Keep) -> Keep:
        """A keep of this file with its place, for a caller in another file."""
        return replace(keep, filename=self.filename, row=keep.stmt.row)
