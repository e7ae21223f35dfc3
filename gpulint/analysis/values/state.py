"""The abstract state at one point of a function: what each name is, where it was born, which graphs are freed."""

from __future__ import annotations

from gpulint.analysis.values.values import NO_TOKENS, Grad, Token, Val, join


class State:
    """Mutable while a path is followed, copied where control splits.

    vars: path → value. born: path → how many loops were open when it was last assigned afresh (-1: outside the
    function). collections: parameter → whether, on this path, it is a list, tuple or dict. freed/retained: graphs that a backward went through, on some path. grad: grad mode.
    """

    __slots__ = ("alive", "born", "collections", "dotted", "freed", "grad", "retained", "vars")

    def __init__(self, grad: Grad) -> None:
        self.vars: dict[str, Val] = {}
        self.born: dict[str, int] = {}
        self.dotted: set[str] = set()
        self.collections: dict[str, bool] = {}
        self.freed: frozenset[Token] = NO_TOKENS
        self.retained: frozenset[Token] = NO_TOKENS
        self.grad = grad
        self.alive = True

    def copy(self) -> State:
        other = State(self.grad)
        other.vars = self.vars.copy()
        other.born = self.born.copy()
        other.dotted = self.dotted.copy()
        other.collections = self.collections
        other.freed = self.freed
        other.retained = self.retained
        other.alive = self.alive
        return other

    def assign(self, path: str, value: Val, depth: int) -> None:
        """Bind a path afresh; what was known of its attributes and items is gone."""
        self.forget(path)
        self.vars[path] = value
        self.born[path] = depth
        if "." in path or "[" in path:
            self.dotted.add(path)

    def forget(self, path: str) -> None:
        if self.dotted:
            gone = [
                other
                for other in self.dotted
                if other.startswith(path) and other[len(path) : len(path) + 1] in ".["
            ]
            for other in gone:
                self.drop(other)

    def drop(self, path: str) -> None:
        self.vars.pop(path, None)
        self.born.pop(path, None)
        self.dotted.discard(path)

    def born_at(self, path: str) -> int | None:
        """The loop depth at which the place, or the object it belongs to, was made; None where nothing is known."""
        while True:
            if path in self.born:
                return self.born[path]
            cut = max(path.rfind("."), path.rfind("["))
            if cut <= 0:
                return None
            path = path[:cut]

    def fresh(self, token: Token) -> None:
        """A graph is made anew: whatever happened to its predecessor is history."""
        if token in self.freed:
            self.freed -= {token}
        if token in self.retained:
            self.retained -= {token}


def merge(a: State, b: State) -> State:
    """The state where two paths meet. A dead path (after return, raise, break) contributes nothing."""
    if not a.alive:
        return b
    if not b.alive or a is b:
        return a
    result = State(a.grad if a.grad is b.grad else Grad.UNKNOWN)
    result.collections = {k: v for k, v in a.collections.items() if b.collections.get(k) is v}
    for path, value in a.vars.items():
        other = b.vars.get(path)
        if other is None:
            if path not in a.dotted:
                result.vars[path] = value
                result.born[path] = a.born[path]
        else:
            result.vars[path] = value if other is value else join(value, other)
            result.born[path] = min(a.born[path], b.born[path])
            if path in a.dotted:
                result.dotted.add(path)
    for path, value in b.vars.items():
        if path not in a.vars and path not in b.dotted:
            result.vars[path] = value
            result.born[path] = b.born[path]
    result.freed = a.freed | b.freed
    result.retained = a.retained | b.retained
    return result
