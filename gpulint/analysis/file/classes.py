"""The classes of a file: what they are, what their attributes hold across methods."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from gpulint.analysis.code import ir
from gpulint.analysis.code.reading import is_vocabulary
from gpulint.analysis.file.evidence import Evidence
from gpulint.analysis.torch import frameworks
from gpulint.analysis.torch.backward import runs_backward
from gpulint.analysis.torch.names import is_loss_function
from gpulint.analysis.values.values import CRITERION, UNKNOWN, Kind, Val, join

if TYPE_CHECKING:
    from gpulint.analysis.torch.names import Names


_TYPED = frozenset({Kind.MODULE, Kind.INSTANCE, Kind.OPTIMIZER, Kind.LOADER})

# `ModelWithLoss` is a network that has one.
_HAS_LOSS = re.compile(r"(?:With|And)(?:Loss|Criterion)$")


def _projects_to_vocabulary(method: ir.Function) -> bool:
    """Whether a constructor makes a Linear whose width is a vocabulary's, for something that embeds tokens."""
    embeds = projects = False
    for _, call in ir.calls(method.body):
        embeds |= call.method == "Embedding"
        width = call.argument(1, "out_features") if call.method == "Linear" else None
        projects |= width is not None and is_vocabulary(width)
    return embeds and projects


class ClassInfo:
    """One class. `attrs` joins everything any method stores; `modules` and `backward` are evidence from all methods."""

    def __init__(self, cls: ir.Class, names: Names) -> None:
        self.cls = cls
        self.bases: list[ClassInfo] = []
        self.home: Any = None  # the analysis of the file it stands in
        self.prepared = False
        self.attrs: dict[str, Val] = {}
        self.modules: set[str] = set()
        self.backward: set[str] = set()
        self.scalars: set[str] = set()
        self.frozen: set[str] = set()
        self.thawed: set[str] = set()
        self.evals: set[str] = set()
        self.settled: set[str] = (
            set()
        )  # of those, what goes into eval mode where it is made, or in the constructor
        self.goes_backward = False
        self.is_dense = False
        self.weights: dict[frozenset[str], Any] = {}  # by the constructor's parameters that are literals
        self.trains: set[str] = set()
        self.base_names = [
            names.qualify(base.path) or base.path for base in cls.bases if base.path is not None
        ]
        lasts = {name.rsplit(".", 1)[-1] for name in self.base_names}
        self.is_module = bool(lasts & frameworks.MODULE_BASES) or any(
            name.startswith("torch.nn.") and name.rsplit(".", 1)[-1][:1].isupper() for name in self.base_names
        )
        self.is_lightning = bool(lasts & {"LightningModule", "LightningDataModule"})
        self.is_hf_trainer = any(
            name.endswith("Trainer") and name.startswith("transformers") for name in self.base_names
        )
        self.is_dataclass = any(
            (d.func.path if isinstance(d, ir.Call) else d.path or "")
            in ("dataclass", "dataclasses.dataclass")
            for d in cls.decorators
        )
        self.is_tuple = bool(lasts & {"NamedTuple", "namedtuple", "ModelOutput"})
        self.module_flags = (
            CRITERION
            if (cls.name.endswith(("Loss", "Criterion")) and not _HAS_LOSS.search(cls.name))
            or any(is_loss_function(n) for n in self.base_names if n.startswith("torch.nn"))
            else 0
        )

    def link(self, classes: dict[str, ClassInfo]) -> None:
        for base in self.cls.bases:
            found = classes.get(base.path or "")
            if found is not None and found is not self:
                self.bases.append(found)

    def inherit(self) -> None:
        """Take over from the bases what they are. Called until nothing changes."""
        for base in self.bases:
            self.is_module |= base.is_module
            self.is_lightning |= base.is_lightning
            self.is_hf_trainer |= base.is_hf_trainer
            self.module_flags |= base.module_flags
            self.modules |= base.modules
            self.backward |= base.backward
            self.scalars |= base.scalars
        if self.cls.bases and "forward" in self.cls.methods and not self.is_module:
            self.is_module = not any(name.endswith("Function") for name in self.base_names)

    def learn(self, method: ir.Function, evidence: Evidence) -> None:
        """Take evidence about `self.x` from one method."""
        if not method.params:
            return
        self.is_dense |= _projects_to_vocabulary(method)
        own = method.params[0].name
        for source, target in (
            (evidence.modules, self.modules),
            (evidence.backward, self.backward),
            (evidence.scalars, self.scalars),
            (evidence.frozen, self.frozen),
            (evidence.thawed, self.thawed),
            (evidence.evals, self.evals),
            (evidence.trains, self.trains),
        ):
            for path in source:
                if path.startswith(f"{own}."):
                    target.add(path[len(own) + 1 :])
        made = evidence.evals if method.name == "__init__" else evidence.evals & evidence.stored
        self.settled |= {path[len(own) + 1 :] for path in made if path.startswith(f"{own}.")}
        self.goes_backward |= any(map(runs_backward, evidence.called))

    def stays_in_eval(self, attr: str) -> bool:
        """Whether a module is put into eval mode and never back into training mode: at construction, or, in a class that does
        not train, by any method."""
        if attr not in self.evals or attr in self.trains or self.is_module:
            return False
        return attr in self.settled or not self.goes_backward

    def holds_functions(self, attr: str) -> bool:
        """Whether an attribute is only ever bound to plain functions: `self.embed = embed_rows` in one branch, `embed_words` in
        the other. No network is in there, whatever is computed with what they give."""
        stored = [
            (method, statement.value)
            for method in self.cls.methods.values()
            if method.params and (path := f"{method.params[0].name}.{attr}") in self._stored_by(method)
            for statement in ir.statements(method.body)
            if isinstance(statement, ir.Assign) and any(target.path == path for target in statement.targets)
        ]
        return bool(stored) and all(self._is_function(method, value) for method, value in stored)

    def _stored_by(self, method: ir.Function) -> set[str]:
        stored: set[str] = self.home.evidence[method].stored
        return stored

    def _is_function(self, method: ir.Function, value: ir.Expr | None) -> bool:
        if isinstance(value, ir.Op) and value.op == "if":
            return all(self._is_function(method, branch) for branch in value.operands[1:])
        if not isinstance(value, ir.Name):
            return isinstance(value, ir.LambdaExpr)
        local = value.id in self.home.evidence[method].assigned | {param.name for param in method.params}
        return not local and self.home.free_name(method, value.id).kind is Kind.FUNCTION

    def ancestors(self) -> list[ClassInfo]:
        """This class and its bases in the file, nearest first, each once."""
        found: list[ClassInfo] = []
        queue = [self]
        while queue:
            current = queue.pop(0)
            if current not in found:
                found.append(current)
                queue.extend(current.bases)
        return found

    def lineage(self) -> list[ClassInfo]:
        """The same, with the bases that stand in other files of the project, as far up as they are seen."""
        found: list[ClassInfo] = []
        queue = [self]
        while queue:
            current = queue.pop(0)
            if current not in found:
                found.append(current)
                queue.extend(current.home.bases_of(current))
        return found

    def method(self, name: str) -> ir.Function | None:
        for info in self.ancestors():
            if name in info.cls.methods:
                return info.cls.methods[name]
        return None

    def base(self) -> ClassInfo | None:
        return self.bases[0] if self.bases else None

    def attr(self, name: str) -> Val:
        for info in self.ancestors():
            if name in info.attrs:
                return info.attrs[name]
        method = self.method(name)
        if method is not None:
            return Val(Kind.FUNCTION, ref=method)
        return UNKNOWN

    def store(self, name: str, value: Val) -> None:
        known = self.attrs.get(name)
        if known is None:
            self.attrs[name] = value
        elif known.kind in _TYPED and value.kind in (Kind.UNKNOWN, Kind.SYMBOL):
            return
        elif known.kind in (Kind.UNKNOWN, Kind.SYMBOL) and value.kind in _TYPED:
            self.attrs[name] = value  # the second round knows what the constructor was given
        else:
            self.attrs[name] = join(known, value).with_tokens(known.tokens | value.tokens)


def is_abstract(method: ir.Function) -> bool:
    """Whether a method does nothing but say that subclasses do it: `raise NotImplementedError`, `...`."""
    return all(
        (isinstance(statement, ir.Jump) and statement.kind == "raise")
        or (isinstance(statement, ir.ExprStmt) and not isinstance(statement.value, ir.Call))
        for statement in method.body
    )
