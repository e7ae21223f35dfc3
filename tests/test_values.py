"""The value lattice's flags: each its own bit, and the plain integers that the analysis works with are theirs."""

from __future__ import annotations

from gpulint.analysis.values import values
from gpulint.analysis.values.values import DEVICE, Flag, Kind, Val, join

_INTEGERS = {name: value for name, value in vars(values).items() if name[0] != "_" and type(value) is int}


def test_no_two_flags_share_a_bit() -> None:
    bits = [flag.value for flag in Flag.__members__.values()]
    assert sum(bits) == 2 ** len(bits) - 1
    assert all(bit.bit_count() == 1 for bit in bits)


def test_the_integers_are_those_of_the_enum() -> None:
    assert {name: Flag[name].value for name in _INTEGERS} == _INTEGERS
    assert len(set(_INTEGERS.values())) == len(_INTEGERS) > 20


def test_each_flag_is_told_apart_from_every_other() -> None:
    for flag in Flag:
        value = Val(Kind.GRAPH, flags=flag.value)
        assert [other for other in Flag if value.has(other.value)] == [flag]
        assert not value.without_flags(flag.value).flags


def test_a_module_without_parameters_on_one_path_only_is_none_on_both() -> None:
    plain = Val(Kind.MODULE, flags=values.PLAIN)
    assert not join(plain, Val(Kind.MODULE)).has(values.PLAIN)
    assert join(plain, plain).has(values.PLAIN)
    assert join(DEVICE.with_flags(values.SLOTS), DEVICE).has(values.SLOTS)
