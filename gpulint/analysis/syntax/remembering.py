"""What is worked out once, and remembered."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

_Method = TypeVar("_Method", bound=Callable[..., Any])


def remembered(known: dict[Any, Any], key: Any, meanwhile: Any, work: Callable[[], Any]) -> Any:
    """What is known of a key, worked out once; `meanwhile` is the answer to who asks while that is going on."""
    if key not in known:
        known[key] = meanwhile
        try:
            known[key] = work()
        except BaseException:
            del known[key]
            raise
    return known[key]


def remembering(meanwhile: Any) -> Callable[[_Method], _Method]:
    """For a method: what it answers to the same arguments is remembered in its object's `answers`."""

    def decorated(method: _Method) -> _Method:
        @wraps(method)
        def asked(self: Any, *given: Any) -> Any:
            key = (method, *given)
            found = self.answers.get(key)
            if found is None:
                return remembered(self.answers, key, meanwhile, lambda: method(self, *given))
            return found

        return asked  # type: ignore[return-value]

    return decorated
