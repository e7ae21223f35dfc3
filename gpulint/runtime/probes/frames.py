"""Which frames are the user's, and the user's line behind an event."""

from __future__ import annotations

import inspect
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType, FrameType
from typing import Any

from gpulint.runtime.record.result import Site

_PACKAGE = os.path.abspath(os.path.join(__file__, "..", "..", "..")) + os.sep
_SITE_DIRECTORIES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


def function_name(code: CodeType) -> str:
    """The qualified name where this Python has it (3.11 on), without the `<locals>` parts."""
    name: str = getattr(code, "co_qualname", code.co_name)
    return name.replace("<locals>.", "")


def site_in(code: CodeType, line: int = 0) -> Site:
    """A line of a function, or where it begins."""
    return Site(os.path.abspath(code.co_filename), line or code.co_firstlineno, function_name(code))


def chain_of(error: BaseException | None) -> Iterator[BaseException]:
    """An error, its causes, what was being handled when it was raised, and the members of groups; each once."""
    pending, seen = [error], set()
    while pending:
        one = pending.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        pending += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]


class Frames:
    """Tells user code from torch, the standard library, installed packages and gpulint itself.

    `home` is the folder of the script or of the module's top package: it is the user's even when it lies in
    site-packages. Sites are interned; an index stands for one line of one function.
    """

    def __init__(self, home: str) -> None:
        self.home = os.path.realpath(home) + os.sep
        paths = sysconfig.get_paths()
        library = {paths["stdlib"], paths["platstdlib"], os.path.dirname(os.__file__)}
        self._library = tuple({os.path.realpath(p) + os.sep for p in library} | {p + os.sep for p in library})
        self.foreign: tuple[str, ...] = ()  # torch's own folder, once it is known
        self._user: dict[str, bool] = {}
        self._interned: dict[tuple[str, int, str], int] = {("", 0, ""): 0}
        self._index: dict[tuple[int, int], int] = {}
        self._codes: list[CodeType] = []  # keeps ids in `_index` from being reused
        self._stacked: dict[int, CodeType] = {}  # and those in the numbers of stacks
        self.sites: list[Site] = [Site("", 0, "")]

    def is_user(self, filename: str) -> bool:
        """Whether a code object's filename belongs to the user."""
        known = self._user.get(filename)
        if known is None:
            known = self._user[filename] = self._decide(filename)
        return known

    def _decide(self, filename: str) -> bool:
        if filename.startswith("<"):  # frozen modules, exec'd text, dataclass methods
            return False
        path = os.path.abspath(filename)
        if path.startswith((_PACKAGE, *self.foreign)) or f"{os.sep}torchinductor_" in path:
            return False
        installed = [path.rfind(part) for part in _SITE_DIRECTORIES]
        if max(installed) >= 0:
            home_installed = max(self.home.rfind(part) for part in _SITE_DIRECTORIES)
            return home_installed >= 0 and path.startswith(self.home)
        return not path.startswith(self._library)

    @staticmethod
    def is_ours(filename: str) -> bool:
        """Whether a code object's filename is gpulint's."""
        return filename.startswith(_PACKAGE)

    def user_frame(self, frame: FrameType | None) -> FrameType | None:
        """The innermost frame of the user's code, from `frame` outwards."""
        is_user = self.is_user
        while frame is not None and not is_user(frame.f_code.co_filename):
            frame = frame.f_back
        return frame

    def index(self, frame: FrameType | None) -> int:
        """The site index of the innermost user frame from `frame` outwards; 0 where there is none."""
        frame = self.user_frame(frame)
        if frame is None:
            return 0
        code = frame.f_code
        key = (id(code), frame.f_lasti)
        index = self._index.get(key)
        if index is None:
            self._codes.append(code)
            site = site_in(code, frame.f_lineno or 0)
            index = self._index[key] = self.intern(site.file, site.line, site.function)
        return index

    def stack(self, frame: FrameType | None) -> int:
        """A number for the user's lines that are running, from `frame` outwards."""
        number = 0
        while (frame := self.user_frame(frame)) is not None:
            code = frame.f_code
            # By its id: to hash a code object takes as long as the code is.
            number = hash((number, id(self._stacked.setdefault(id(code), code)), frame.f_lineno))
            frame = frame.f_back
        return number

    def intern(self, file: str, line: int, function: str) -> int:
        """The index of a site, which may come from elsewhere: an allocator's recorded stack, say."""
        index = self._interned.setdefault((file, line, function), len(self.sites))
        if index == len(self.sites):
            self.sites.append(Site(file, line, function))
        return index

    def recorded(self, stack: Iterable[Mapping[str, Any]]) -> int:
        """The index of the user's line in a stack as the allocator records it; 0 where there is none."""
        for frame in stack:
            if self.is_user(frame["filename"]):
                return self.intern(frame["filename"], frame["line"], frame["name"])
        return 0

    def here(self, depth: int = 1) -> Site:
        """The user's line that led to the caller."""
        return self.sites[self.index(sys._getframe(depth))]


class Activation:
    """One call of a function: lives as long as the frame that it is put on. Where a debugger asks for it as a trace
    function, it declines."""

    __slots__ = ("__weakref__",)

    def __call__(self, *event: object) -> None:
        return None


def activation(frame: FrameType) -> Activation | None:
    """The call that a frame is; None where a debugger follows it."""
    if frame.f_trace is None:
        frame.f_trace = Activation()
    return frame.f_trace if type(frame.f_trace) is Activation else None


def frame_locals(frame: FrameType) -> dict[str, Any]:
    """A copy of a frame's locals that leaves nothing behind.

    Before Python 3.13 `f_locals` caches a dict on the frame, which would keep every value in it alive long
    after the script has let go. It is emptied, unless it is a namespace of its own, the script holds it too
    (`locals()`), or a debugger is tracing, which may write it back into the variables.
    """
    namespace = frame.f_locals
    if type(namespace) is not dict and frame.f_code.co_flags & inspect.CO_OPTIMIZED == 0:
        return {}  # a class body's own mapping: to ask it would run the user's code
    copy = dict(namespace)
    if sys.version_info < (3, 13) and frame.f_code.co_flags & inspect.CO_OPTIMIZED and sys.gettrace() is None:
        if sys.getrefcount(namespace) <= 3:  # the frame's, `namespace`, and the call's own
            namespace.clear()
    return copy
