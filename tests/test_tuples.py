"""Named tuples without compiled methods: they behave as those of `typing`."""

from __future__ import annotations

import copy
import inspect
import pickle
import sys
import typing
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import pytest
from pydantic import TypeAdapter

from cuggino import _tuples

T = TypeVar("T")


def _point(base: Any) -> Any:
    class Point(base):  # type: ignore[misc]
        x: int
        y: int = 2
        label: str = ""

        @property
        def sum(self) -> int:
            return int(self.x + self.y)

    return Point


def _single(base: Any) -> Any:
    class Single(base):  # type: ignore[misc]
        """One value."""

        name: str

    return Single


def _box(base: Any) -> Any:
    class Box(base, Generic[T]):  # type: ignore[misc]
        content: T
        size: int = 0

    return Box


def _empty(base: Any) -> Any:
    class Empty(base):  # type: ignore[misc]
        pass

    return Empty


KINDS = (_point, _single, _box, _empty)
BASES = (typing.NamedTuple, _tuples.NamedTuple)

CALLS: tuple[tuple[tuple[Any, ...], dict[str, Any]], ...] = (
    ((), {}),
    ((1,), {}),
    ((1, 3), {}),
    ((1, 3, "a"), {}),
    ((1, 3, "a", 4), {}),
    ((1,), {"x": 1}),
    ((1,), {"y": 5}),
    ((1, 5), {"label": "b"}),
    ((1, 5, "a"), {"label": "b"}),
    ((), {"x": 1, "label": "a"}),
    ((), {"y": 1}),
    ((), {"x": 1, "z": 1}),
    ((), {"name": "a"}),
    ((), {"content": [1]}),
    ((), {"self": 1, "cls": 2}),
)


def _both(found: Callable[[Any], Any], *errors: type[Exception]) -> Any:
    """Return what both bases have in common."""
    answers = []
    for base in BASES:
        try:
            answers.append(found(base))
        except errors as error:
            answers.append(type(error).__name__)
    assert answers[0] == answers[1]
    return answers[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("args", "kwargs"), CALLS)
def test_accepts_the_same_arguments(
    kind: Callable[[Any], Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    def found(base: Any) -> Any:
        value = kind(base)(*args, **kwargs)
        return repr(value), tuple(value), value._asdict()

    _both(found, TypeError)


@pytest.mark.parametrize("kind", KINDS)
def test_has_the_same_class(kind: Callable[[Any], Any]) -> None:
    def found(base: Any) -> Any:
        cls = kind(base)
        names = [
            *("_fields", "_field_defaults", "__match_args__", "__slots__", "__doc__"),
            *("__module__", "__qualname__", "__name__"),
        ]
        signature = inspect.signature(cls)
        return (
            [getattr(cls, name) for name in names],
            [(one.name, one.default, one.kind) for one in signature.parameters.values()],
            type(cls),
            issubclass(cls, tuple),
            typing.get_type_hints(cls, {}, {"T": T}),
        )

    _both(found)


def test_replaces_and_makes() -> None:
    _both(lambda base: tuple(_point(base)(1)._replace(y=3)))
    _both(lambda base: tuple(_point(base)(1)._replace(z=3)), TypeError, ValueError)
    _both(lambda base: tuple(_point(base)._make([1, 2, "a"])))
    _both(lambda base: tuple(_point(base)._make([1])), TypeError)
    if sys.version_info >= (3, 13):
        _both(lambda base: tuple(copy.replace(_point(base)(1), x=2)))


def test_is_a_tuple() -> None:
    point = _point(_tuples.NamedTuple)
    assert point(1) == (1, 2, "") == (*point(1),)
    assert hash(point(1)) == hash((1, 2, ""))
    assert point(1) < point(2)
    assert 3 == point(1).sum
    assert not hasattr(point(1), "__dict__")
    with pytest.raises(AttributeError):
        point(1).x = 2


def test_rejects_a_field_without_default_after_one() -> None:
    def found(base: Any) -> Any:
        class Wrong(base):  # type: ignore[misc]
            x: int = 1
            y: int

        return Wrong

    assert "TypeError" == _both(found, TypeError)


def test_takes_parameters() -> None:
    box = _box(_tuples.NamedTuple)
    assert (int,) == typing.get_args(box[int])
    assert box is typing.get_origin(box[int])
    assert box[int](3) == (3, 0)


class Pair(_tuples.NamedTuple):
    left: int
    right: tuple[int, ...] = ()


class Named(Pair):
    """A subclass, which may replace methods."""

    def __repr__(self) -> str:
        return f"<{super().__repr__()}>"


@pytest.mark.parametrize("kind", [Pair, Named])
def test_copies_and_pickles(kind: type[Pair]) -> None:
    pair = kind(1, (2, 3))
    for made in (copy.copy(pair), copy.deepcopy(pair), pickle.loads(pickle.dumps(pair))):
        assert (kind, pair) == (type(made), made)
    assert ("<Named(left=1, right=())>", "Pair(left=1, right=())") == (repr(Named(1)), f"{Pair(1)}")


def test_matches_by_position() -> None:
    match Pair(1, (2,)):
        case Pair(left, right):
            assert (left, right) == (1, (2,))


def test_is_validated_by_pydantic() -> None:
    adapter = TypeAdapter(Pair)
    assert Pair(1, (2,)) == adapter.validate_python({"left": 1, "right": [2]})
    assert Pair(1) == adapter.validate_python([1])
    assert b"[1,[2]]" == adapter.dump_json(Pair(1, (2,)))


def test_a_subclass_of_a_named_tuple() -> None:
    """It has the fields of its base, also in the message of a wrong call."""

    class Named(_point(_tuples.NamedTuple)):  # type: ignore[misc]
        pass

    assert (1, 2, "") == Named(1)
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        Named()
