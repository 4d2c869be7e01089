"""When `extract_markers` tells a marker of a message that is still being written."""

from __future__ import annotations

import pytest

from tests.operators.written import delta, message, said, shown, steps


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
    ],
)
def test_a_marker_waits_until_it_is_sure(begin: str, decides: str, expected: list[str]) -> None:
    """No marker is told that the whole text would not hold, and each as soon as that is known."""
    first, second, *_ = steps([delta(begin), delta(decides)])
    assert not [item for item in shown(said(first)) if item == "Note(n)"]
    assert expected == [item for item in shown(said(second)) if item.endswith(")")]
    whole = steps([message(begin + decides + "\n\nend")])[0]
    assert expected == [item for item in shown(whole) if item in expected or item == "Note(n)"]
