"""The diffs of commits, from the output of git."""

from __future__ import annotations

from collections.abc import Iterable

from cuggino.report import CommitDiff, FileChange, diff
from cuggino.report.diffs import MOST, DiffParser


def parsed(lines: Iterable[str]) -> dict[str, CommitDiff]:
    """Return the changes of each commit in the output of git."""
    parser = DiffParser()
    for line in lines:
        parser.add(line)
    return parser.result()


def test_changes_and_patches() -> None:
    """The changed files and the patch of each commit are parsed; a binary file has no lines."""
    lines = [
        *("noise", "\x01aaa", "", "3\t1\ta b.py", "-\t-\tlogo.png", "x\ty\tz", ""),
        *("diff --git a b.py a b.py", "index 1..2", "@@ -1 +1 @@", "-one", "+two"),
        *("\x01bbb", ""),
    ]
    found = parsed(lines)
    changes = (FileChange("a b.py", 3, 1), FileChange("logo.png", None, None))
    assert changes == found["aaa"].changes
    assert "diff --git a b.py a b.py\n@@ -1 +1 @@\n-one\n+two" == found["aaa"].patch.head
    assert ((), "") == (found["bbb"].changes, found["bbb"].patch.head)


def test_long_patches_are_cut() -> None:
    """Of a long patch head and tail are kept, and the rest is counted."""
    body = [f"+line {n:06}" for n in range(50_000)]
    (known,) = parsed(["\x01aaa", "diff --git a a", *body]).values()
    assert known.patch.size <= MOST
    assert known.patch.head.startswith("diff --git a a\n+line 000000\n")
    assert known.patch.tail.endswith("+line 049999")
    whole = len("\n".join(["diff --git a a", *body]))
    assert abs(whole - known.patch.size - known.patch.left_out) <= 2


def test_long_lines_are_cut() -> None:
    """A line of megabytes, as in minified code, is cut."""
    (known,) = parsed(["\x01aaa", "diff --git a a", "+" + "x" * 5_000_000]).values()
    assert known.patch.size < 2000


def test_classes() -> None:
    """Lines that are added, deleted or headings have a class; neighbors share an element."""
    shown = diff("diff --git a a\n--- a\n+++ a\n@@ -1 +1 @@\n same\n-<b>\n+one\n+two")
    assert (
        '<pre class="diff"><span class="f">diff --git a a\n--- a\n+++ a\n</span>'
        '<span class="h">@@ -1 +1 @@\n</span> same\n'
        '<span class="d">-&lt;b&gt;\n</span><span class="a">+one\n+two\n</span></pre>'
    ) == str(shown)
