"""The order in which items begin, by what each comes after."""

from __future__ import annotations

import random

import pytest

from cuggino.domain import ready_order
from tests.growth import is_linear
from tests.vectors import each


def test_without_dependencies_all_are_ready() -> None:
    """The order is that of the backlog."""
    order = ready_order({"b.md": (), "a.md": (), "c.md": ()})
    assert ("b.md", "a.md", "c.md") == order.ready
    assert not order.waiting
    assert not order.held


def test_a_chain() -> None:
    """Each item waits until the one before it has landed."""
    items = {"a.md": (), "b.md": ("a.md",), "c.md": ("b.md", "a.md")}
    first = ready_order(items)
    assert ("a.md",) == first.ready
    assert {"b.md": ("a.md",), "c.md": ("b.md", "a.md")} == first.waiting
    del items["a.md"]
    second = ready_order(items, landed=["a.md"])
    assert ("b.md",) == second.ready
    assert {"c.md": ("b.md",)} == second.waiting
    assert {"b.md": ("a.md",), "c.md": ("a.md",)} == second.landed
    del items["b.md"]
    assert ("c.md",) == ready_order(items, landed={"a.md", "b.md"}).ready


def test_a_name_may_lack_its_suffix() -> None:
    """A name that fits exactly comes first; otherwise all with a suffix are meant."""
    items = {"login": (), "login.md": (), "x.md": ("login",)}
    assert {"x.md": ("login",)} == ready_order(items).waiting
    items = {"a.b.md": (), "a.txt": (), "a.md": (), "x.md": ("a", "a.b")}
    assert {"x.md": ("a.md", "a.txt", "a.b.md")} == ready_order(items).waiting
    assert ("x.md",) == ready_order({"x.md": ("login",)}, landed=["login.md"]).ready


def test_an_item_of_the_backlog_has_not_landed() -> None:
    """An item that was added again after one of the same name is waited for."""
    items = {"a.md": (), "b.md": ("a.md",)}
    assert ("a.md",) == ready_order(items, landed=["a.md"]).ready


def test_unknown_names_hold_an_item() -> None:
    """The reason names them; what comes after the item is held as well, all else goes on."""
    items = {"a.md": ("nothing", "b.md", "none"), "b.md": (), "c.md": ("a",), "d.md": ("c",)}
    order = ready_order(items)
    assert ("b.md",) == order.ready
    reason = "comes after nothing and none, which are not in the backlog"
    assert {
        "a.md": reason,
        "c.md": f"comes after a.md, which {reason}",
        "d.md": "comes after c.md, which is held",
    } == order.held
    assert not order.waiting


@pytest.mark.parametrize("in_backlog", [True, False])
def test_held_items_hold_those_after_them(in_backlog: bool) -> None:
    """A spec issue holds its item and those after it; so does a parked item."""
    items = {"a.md": (), "b.md": ("a",), "c.md": ()}
    if not in_backlog:
        del items["a.md"]
    order = ready_order(items, held={"a.md": "has a spec issue"}, landed=["a.md"])
    assert ("c.md",) == order.ready
    own = {"a.md": "has a spec issue"} if in_backlog else {}
    assert {**own, "b.md": "comes after a.md, which has a spec issue"} == order.held


def test_circles_are_held() -> None:
    """Each item of a circle is named with the way around; the rest goes on."""
    items = {
        "a.md": ("c.md",),
        "b.md": ("a.md",),
        "c.md": ("b.md",),
        "d.md": ("a.md",),
        "e.md": ("e.md",),
        "f.md": (),
    }
    order = ready_order(items)
    assert ("f.md",) == order.ready
    assert {
        "a.md": "comes after itself: a.md -> c.md -> b.md -> a.md",
        "b.md": "comes after itself: b.md -> a.md -> c.md -> b.md",
        "c.md": "comes after itself: c.md -> b.md -> a.md -> c.md",
        "d.md": ("comes after a.md, which comes after itself: a.md -> c.md -> b.md -> a.md"),
        "e.md": "comes after itself: e.md -> e.md",
    } == order.held


def test_a_long_circle_is_shortened() -> None:
    """The reason stays readable."""
    items = {str(n): (str((n + 1) % 100),) for n in range(100)}
    assert "comes after itself: 0 -> 1 -> 2 -> 3 -> 4 -> ... -> 0" == ready_order(items).held["0"]


@each("seed", range(200))
def test_every_item_is_in_one_place(seed: int) -> None:
    """Landing ready items lands all that are not held, each after its prerequisites."""
    chance = random.Random(seed)
    names = [f"{n}.md" for n in range(12)]
    items = {
        name: tuple(chance.sample([*names, "missing"], chance.choice([0, 0, 1, 1, 2])))
        for name in names
    }
    held = {chance.choice(names): "is parked"} if chance.random() < 0.3 else {}
    begun = ready_order(items, held=held)
    left, landed = dict(items), list[str]()
    while (order := ready_order(left, landed=landed, held=held)).ready:
        assert sorted(left) == sorted([*order.ready, *order.waiting, *order.held])
        assert begun.held == order.held
        for name in order.ready:
            assert set(items[name]) <= set(landed)
            del left[name]
        landed += order.ready
    assert left.keys() == begun.held.keys()
    for name in left:
        stuck = name in held or {*items[name]} & (left.keys() | {"missing"})
        assert stuck, f"{name} is held without a reason"


def test_ten_thousand_items() -> None:
    """A long chain and thousands of circles are ordered in linear time."""

    def work(count: int) -> None:
        chain: dict[str, tuple[str, ...]]
        chain = {f"{n:05}": (f"{n - 1:05}",) if n else () for n in range(count)}
        circles: dict[str, tuple[str, ...]] = {f"x{n:05}": (f"x{n ^ 1:05}",) for n in range(count)}
        order = ready_order(chain | circles)
        assert ("00000",) == order.ready
        assert circles.keys() == order.held.keys()

    assert is_linear(work, small=1_250, large=10_000)
