"""The time at which `extract_markers` emits a marker of an unfinished message."""

from __future__ import annotations

import pytest

from cuggino.events import Done, Event, SystemMessage
from tests.operators.written import delta, flat, message, messages_and_markers, shown, steps

RETRY = SystemMessage(text="Retrying")


@pytest.mark.parametrize(
    ("begin", "decides", "expected"),
    [
        ("a ` b <NOTE>n</NOTE> ", "`", []),
        ("a ` b <NOTE>n</NOTE>\n", "\n", ["Note(n)"]),
        ("a `` ` <NOTE>n</NOTE>\n", "~~~ ", ["Note(n)"]),
        ("```py <NOTE>n</NOTE>", "\n", []),
        ("```py <NOTE>n</NOTE>", "`\n\n", ["Note(n)"]),
        ("```\n<NOTE>n</NOTE>\n```", "\n<DONE>d</DONE>", ["Done(d)"]),
        ("```\n<NOTE>n</NOTE>\n```", "x\n<DONE>d</DONE>", []),
        ("~~~~ x\n<NOTE>n</NOTE>\n~~~", "~ \r\n<DONE>d</DONE>", ["Done(d)"]),
        ("<DONE>d <NOTE>n</NOTE> ", "</DONE>", ["Done(d <NOTE>n</NOTE>)"]),
        ("<DONE>d <NOTE>n</NOTE> ", "<DONE>", ["Note(n)"]),
        ("<NOTE>x ` y</NOTE> ", "` z</NOTE>", ["Note(x ` y</NOTE> ` z)"]),
        ("<NOTE>n</NOTE", ">", ["Note(n)"]),
        ("\\` <NOTE>n</NOTE", ">", ["Note(n)"]),
        ("\\` ` <NOTE>n</NOTE> `", "\n\n", []),
        ("a ` b\n>\n<NOTE>n</NOTE>", "`\n\n", []),
        ("a ` b\n \t\n<NOTE>n</NOTE", ">", ["Note(n)"]),
        ("`` \\` ` <NOTE>n</NOTE> `", "\n\n", []),
        ("`` \\` <NOTE>n</NOTE> `", "\n\n", ["Note(n)"]),
        ("```\na\n```\rx\n<NOTE>n</NOTE>", "\n", []),
        ("```\na\n> ````\t\r\n<NOTE>n</NOTE", ">", ["Note(n)"]),
        ("````\na\n```\n<NOTE>n</NOTE>", "\n", []),
        ("a ```\n<NOTE>n</NOTE>", "\n\n", ["Note(n)"]),
        ("``x\n<NOTE>n</NOTE>", "\n\n", ["Note(n)"]),
        ("~~ x\n<NOTE>n</NOTE", ">", ["Note(n)"]),
        ("<NOTE>a <DONE>b</NOTE> <NOTE>n</NOTE", ">", ["Note(n)"]),
        ("a ` <NOTE>n</NOTE>\n```", "\n", ["Note(n)"]),
        ("x\\", "` <NOTE>n</NOTE>", ["Note(n)"]),
    ],
)
def test_a_marker_waits_until_it_is_sure(begin: str, decides: str, expected: list[str]) -> None:
    """Only markers of the whole text are emitted, each as soon as it is certain."""
    first, second, *_ = steps([delta(begin), delta(decides)])
    assert not [item for item in shown(messages_and_markers(first)) if item == "Note(n)"]
    assert expected == [item for item in shown(messages_and_markers(second)) if item.endswith(")")]
    *one_by_one, last, _end = steps([*map(delta, begin), delta(decides)])
    assert shown(messages_and_markers(first)) == shown(messages_and_markers(flat(one_by_one)))
    assert shown(messages_and_markers(second)) == shown(messages_and_markers(last))
    whole = steps([message(begin + decides + "\n\nend")])[0]
    assert expected == [item for item in shown(whole) if item in expected or item == "Note(n)"]


@pytest.mark.parametrize(
    "before",
    [
        "",
        "\n",
        "a\n\n",
        "`` a ``",
        "` a\n\n",
        "```\na\n```\n",
        "```\n> a\n```\t\r\n",
        "~~~\n~~\na\n~~~\n",
        "~~ a\n",
        "```py`\n\n",
        "``` a ```",
        "\\` ",
        "<DONE>d</DONE>",
        "</DONE>",
    ],
)
def test_all_of_a_delta_is_read_at_once(before: str) -> None:
    """A certain marker is emitted with its delta, whatever precedes it there."""
    first, *_ = steps([delta(f"{before}<NOTE>n</NOTE>")])
    assert "Note(n)" == shown(messages_and_markers(first))[-1]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (
            ("a\n```\nx", "y\n```\nz"),
            [["+a\n```\nx"], ["a"], ["+y\n```\nz"], ["```\nxy\n```\nz"], []],
        ),
        (
            ("```\nx  ", "  y\n```\n<NOTE>n</NOTE> z"),
            [
                ["+```\nx"],
                [],
                ["+    y\n```", "```\nx    y\n```", "Note(n)", "+z"],
                ["z"],
                [],
            ],
        ),
        (("a <NO", "b c"), [["+a"], ["a"], ["+<NOb c"], ["<NOb c"], []]),
        (("a `", "b"), [["+a `"], ["a `"], ["+b"], ["b"], []]),
    ],
)
def test_what_was_shown_of_a_part_is_not_shown_again(
    parts: tuple[str, ...], expected: list[list[str]]
) -> None:
    """Deltas of the next part continue after the open text of the part before."""
    events = [event for part in parts for event in (delta(part), message(part))]
    assert expected == [shown(step) for step in steps(events)]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (
            [delta("a ` b <NOTE>n</NOTE> c"), delta("\n\n")],
            [["+a ` b"], ["a ` b", "Note(n)", "+c"], []],
        ),
        (
            [delta("a <NOTE>n</NOTE> b"), delta(" <NOTE>m</NOTE> c")],
            [["+a", "a", "Note(n)", "+b"], ["b", "Note(m)", "+c"], []],
        ),
        (
            [delta("<NOTE>n</NOTE> ` <NOTE>n</NOTE>"), message("<NOTE>n</NOTE> ` <NOTE>n</NOTE>")],
            [["Note(n)", "+`"], ["`", "Note(n)"], []],
        ),
        ([delta("abc"), message("xyz defgh")], [["+abc"], ["xyz defgh"], []]),
        ([delta("a <NO"), message("a <NO"), message("b")], [["+a"], ["a"], ["<NOb"], []]),
        (
            [delta("a <NOTE>n</NOTE> x"), RETRY, message("a <NOTE>n</NOTE> b", "m2")],
            [["+a", "a", "Note(n)", "+x"], ["SystemMessage"], ["a", "b"], []],
        ),
        (
            [delta("a <NO"), message("b <NOTE>n</NOTE> c")],
            [["+a"], ["b", "Note(n)", "c"], []],
        ),
    ],
)
def test_only_what_is_text_for_sure_is_shown(
    events: list[Event], expected: list[list[str]]
) -> None:
    """A possible marker is held back, each marker is emitted, and no text is late."""
    assert expected == [shown(step) for step in steps(events)]


def test_behind_a_marker_that_waits_nothing_is_told() -> None:
    """A marker of `at_end`, and all text after it in the same delta, waits for the part."""
    text = "a <DONE>d</DONE> <NOTE>n</NOTE> b"
    seen = steps([delta(text), message(text)], at_end=lambda marker: isinstance(marker, Done))
    assert [["+a"], ["a", "Done(d)", "Note(n)", "b"], []] == [shown(step) for step in seen]
