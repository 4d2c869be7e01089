"""Numbers of backlog items: a new item sorts last."""

from __future__ import annotations

from hypothesis import given, strategies as st

from cuggino.storage.backlog import next_number
from tests.vectors import each

SEPARATED = st.tuples(
    st.integers(0, 999_999), st.integers(3, 6), st.sampled_from(["-a.md", ".md"])
).map(lambda drawn: f"{drawn[0]:0{drawn[1]}}{drawn[2]}")


@each(
    "expected, names",
    [
        ("001", []),
        ("001", ["login.md", "7-of-9.md", "12-x.md", "20261121-x.md", "0015x.md"]),
        ("002", ["001-a.md"]),
        ("011", ["010.md", "009-b.md"]),
        ("0012", ["0011-a.md"]),
        ("101", ["0999-a.md", "100-b.md"]),
        ("999", ["998-a.md"]),
        ("999001", ["999-a.md"]),
        ("999001", ["999-a.md", "1000-b.md"]),
        ("999002", ["999-a.md", "999001-b.md", "1000-c.md"]),
        ("1002", ["100-a.md", "1001-b.md"]),
        ("999999001", ["999999-a.md"]),
        ("999999002", ["999999001-a.md"]),
        ("9999001", ["9999-a.md"]),
        ("9999002", ["9999001-a.md"]),
    ],
)
def test_next_number(expected: str, names: list[str]) -> None:
    """It follows the last number in its width, and never gets wider."""
    assert expected == next_number(names)


@given(names=st.lists(SEPARATED, max_size=8), more=st.integers(1, 40))
def test_each_new_name_comes_last(names: list[str], more: int) -> None:
    """For any numbers, each added name sorts after all others."""
    for _ in range(more):
        added = f"{next_number(names)}-new.md"
        assert all(name < added for name in names)
        names = [*names, added]


def test_two_thousand_and_more() -> None:
    """Names added one after another stay in order across every overflow."""
    names = ["000-first.md"]
    for _ in range(2500):
        names.append(f"{next_number(names[-1:])}-x.md")
    assert sorted(names) == names
    assert len(set(names)) == len(names)
    assert "999999502-x.md" == names[-1]
