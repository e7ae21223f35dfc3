"""Dicts and tuples whose fields are known by key: what a key gives, what storing under a key leaves."""

from __future__ import annotations

from typing import Any

from gpulint.analysis.values.values import (
    MAYBE,
    NAMED,
    OPEN,
    UNKNOWN,
    Kind,
    Val,
    container,
    element,
    mixed,
)


def field(record: Val, key: object) -> Val | None:
    """What `record[key]` gives for a constant key; None where the record does not tell keys apart."""
    if record.ref is None or record.items is None:
        return None
    keys: tuple[Any, ...] = record.ref
    for known, item in zip(keys, record.items, strict=True):
        if known == key and type(known) is type(key):
            return item
    if record.has(OPEN):
        rest = element(record)
        return rest.with_flags(MAYBE | NAMED) if rest.kind is Kind.GRAPH else rest
    return None


def is_dict(record: Val) -> bool:
    """Whether iterating over the record gives its keys."""
    return record.ref is not None and any(isinstance(key, str) for key in record.ref)


def with_field(record: Val, key: object, value: Val) -> Val | None:
    """The record after `record[key] = value`; None where it does not tell keys apart."""
    if record.ref is None or record.items is None or not isinstance(key, str):
        return None
    fields = dict(zip(record.ref, record.items, strict=True))
    if None in fields:
        return None
    fields[key] = value
    elem: Val | None = None
    for item in fields.values():
        elem = item if elem is None else mixed(elem, item)
    return container(elem, tuple(fields.values()), record.flags, tuple(fields))


def proven(fields: tuple[object, ...], graph: Val) -> Val:
    """A record made by something unseen, of which backward proves that some fields are tensors with a graph."""
    return container(graph, (graph,) * len(fields), OPEN, fields) if fields else UNKNOWN
