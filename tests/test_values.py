"""Dataclasses without compiled methods: they behave as those of `dataclasses`."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import field
from typing import Any

import pytest

from cuggino import _values


def _point(make: Any) -> Any:
    @make(frozen=True, slots=True)
    class Point:
        x: int
        y: int = 2
        tags: list[str] = field(default_factory=list, compare=False, repr=False)

    return Point


def _options(make: Any) -> Any:
    @make(frozen=True, kw_only=True)
    class Options:
        name: str
        size: int = 1

    return Options


def _counter(make: Any) -> Any:
    @make(slots=True)
    class Counter:
        start: int = 0
        count: int = field(default=0, init=False)
        doubled: int = field(init=False)

        def __post_init__(self) -> None:
            self.doubled = 2 * self.start

    return Counter


KINDS: tuple[Callable[[Any], Any], ...] = (_point, _options, _counter)

CALLS: tuple[tuple[tuple[Any, ...], dict[str, Any]], ...] = (
    ((), {}),
    ((1,), {}),
    ((1, 3), {}),
    ((1, 3, ["a"]), {}),
    ((1, 3, ["a"], 4), {}),
    ((1,), {"x": 1}),
    ((1,), {"y": 5}),
    ((), {"x": 1, "tags": ["a"]}),
    ((), {"y": 1}),
    ((), {"x": 1, "z": 1}),
    ((), {"name": "a"}),
    (("a",), {}),
    ((), {"name": "a", "size": 2}),
    ((), {"start": 4}),
    ((), {"count": 4}),
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("args", "kwargs"), CALLS)
def test_accepts_the_same_arguments(
    kind: Callable[[Any], Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    found = []
    for make in (dataclasses.dataclass, _values.dataclass):
        try:
            value = kind(make)(*args, **kwargs)
        except TypeError:
            found.append(("TypeError", ""))
        else:
            found.append((repr(value), repr(dataclasses.asdict(value))))
    assert found[0] == found[1]


@pytest.mark.parametrize("kind", KINDS)
def test_has_the_same_signature(kind: Callable[[Any], Any]) -> None:
    ours, theirs = (
        [
            (name, parameter.kind, parameter.annotation)
            for name, parameter in inspect.signature(kind(make)).parameters.items()
        ]
        for make in (_values.dataclass, dataclasses.dataclass)
    )
    assert ours == theirs


def test_compares_and_hashes_by_its_fields() -> None:
    point = _point(_values.dataclass)
    assert point(1, tags=["a"]) == point(1)
    assert point(1) != point(2)
    assert point(1) != (1, 2)
    assert point(1) != _point(_values.dataclass)(1)
    assert hash(point(1, tags=["a"])) == hash(point(1))
    with pytest.raises(TypeError, match="unhashable"):
        hash(_counter(_values.dataclass)())


def test_keeps_identity_without_eq() -> None:
    @_values.dataclass(frozen=True, eq=False)
    class Candidate:
        name: str

    one = Candidate("a")
    assert one != Candidate("a")
    assert {one: 1}[one] == 1


@pytest.mark.parametrize(("kind", "name"), [(_point, "x"), (_options, "name")])
def test_a_frozen_value_refuses_changes(kind: Callable[[Any], Any], name: str) -> None:
    value = kind(_values.dataclass)(**{name: 1})
    with pytest.raises(dataclasses.FrozenInstanceError, match=name):
        setattr(value, name, 2)
    with pytest.raises(dataclasses.FrozenInstanceError, match=name):
        delattr(value, name)
    assert getattr(value, name) == 1


def test_replace_keeps_the_other_fields() -> None:
    options = _options(_values.dataclass)
    assert dataclasses.replace(options(name="a", size=3), name="b") == options(name="b", size=3)
    with pytest.raises(TypeError):
        dataclasses.replace(options(name="a"), unknown=1)


def test_each_value_has_its_own_default() -> None:
    point = _point(_values.dataclass)
    first = point(1)
    first.tags.append("a")
    assert point(1).tags == []


def test_keeps_methods_of_the_class() -> None:
    @_values.dataclass(frozen=True)
    class Named:
        name: str

        def __init__(self, name: str, *more: str) -> None:
            object.__setattr__(self, "name", " ".join((name, *more)))

        def __repr__(self) -> str:
            return f"<{self.name}>"

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Named)

        def __hash__(self) -> int:
            return 7

    assert repr(Named("a", "b")) == "<a b>"
    assert str(inspect.signature(Named)) == "(name: 'str', *more: 'str') -> 'None'"
    assert Named("a") == Named("b")
    assert hash(Named("a")) == 7


@_values.dataclass(frozen=True, slots=True)
class Pair:
    left: int
    right: tuple[int, ...] = ()


def test_copies_and_pickles_with_slots() -> None:
    pair = Pair(1, (2, 3))
    assert not hasattr(pair, "__dict__")
    assert copy.copy(pair) == copy.deepcopy(pair) == pickle.loads(pickle.dumps(pair)) == pair


def test_matches_by_position() -> None:
    match Pair(1, (2,)):
        case Pair(left, right):
            assert (left, right) == (1, (2,))
