"""The order of the items of a backlog, and their focus."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cuggino.errors import ConfigError
from cuggino.storage import Backlog, Workspace

AFTER_A = "---\nafter: a\n---\n# B\n"

Write = Callable[..., None]


@pytest.fixture
def backlog(tmp_path: Path) -> Backlog:
    workspace = Workspace(tmp_path)
    workspace.backlog.mkdir(parents=True)
    return Backlog(workspace)


@pytest.fixture
def write(backlog: Backlog) -> Write:
    def write(**texts: str) -> None:
        for name, text in texts.items():
            backlog.path(f"{name}.md").write_text(text)

    return write


def archive(backlog: Backlog, name: str, outcome: str) -> None:
    digest = backlog.digest(name)
    assert digest is not None
    assert backlog.archive(name, outcome, digest)


def test_an_item_waits_for_the_one_before_it(backlog: Backlog, write: Write) -> None:
    """It may begin once that is archived, approved or at its last iteration."""
    for outcome in ("approved", "max-iterations"):
        write(a="# A\n", b=AFTER_A)
        order = backlog.order(backlog.items())
        assert ("a.md",) == order.ready
        assert {"b.md": ("a.md",)} == order.waiting
        archive(backlog, "a.md", outcome)
        assert ("b.md",) == backlog.order(backlog.items()).ready


def test_an_item_waits_for_its_time(backlog: Backlog, write: Write) -> None:
    """Of several times the latest counts; those after the item wait for it; a bad time holds it."""
    write(
        a="---\nafter: [2026-12-01 UTC, 2026-12-01 08:00 UTC]\n---\n# A\n",
        b=AFTER_A,
        c="---\nafter:\n  - 2026-13-01\n---\n# C\n",
    )
    for hour, ready in ((7, ()), (8, ("a.md",))):
        now = datetime(2026, 12, 1, hour, tzinfo=UTC)
        order = backlog.order(backlog.items(), now=now)
        assert ready == order.ready
        assert {"b.md": ("a.md",)} == order.waiting
        assert bool(ready) is backlog.may_begin("a.md", now)
        bad = "comes after 2026-13-01, which is not a time: month must be in 1..12"
        until = {} if ready else {"a.md": "until 2026-12-01 08:00 UTC"}
        assert {"c.md": bad, **until} == order.reasons


def test_what_a_person_took_out_holds_an_item(backlog: Backlog, write: Write) -> None:
    """A parked item and a removed one have not landed, even if they had before."""
    write(a="# A\n", b=AFTER_A)
    archive(backlog, "a.md", "approved")
    write(a="# A\n")
    backlog.park("a.md", "failed")
    assert {"b.md": "comes after a.md, which is parked"} == backlog.order(backlog.items()).held
    backlog.remove("a.md")
    assert {"b.md": "comes after a.md, which was removed"} == backlog.order(backlog.items()).held
    write(a="# A\n")
    archive(backlog, "a.md", "approved")
    assert ("b.md",) == backlog.order(backlog.items()).ready


def test_a_parked_item_of_the_same_name_holds_nothing(backlog: Backlog, write: Write) -> None:
    """Only the item in the backlog counts, not the parked one."""
    write(a="# A\n", b=AFTER_A)
    backlog.park("a.md", "failed")
    write(a="# A\n")
    assert ("a.md",) == backlog.order(backlog.items()).ready


def test_items_held_for_other_reasons(backlog: Backlog, write: Write) -> None:
    """They hold what comes after them, and nothing else."""
    write(a="# A\n", b=AFTER_A, c="# C\n")
    order = backlog.order(backlog.items(), held={"a.md": "has a spec issue"})
    assert ("c.md",) == order.ready
    assert {
        "a.md": "has a spec issue",
        "b.md": "comes after a.md, which has a spec issue",
    } == order.held


def test_an_edited_item(backlog: Backlog, write: Write) -> None:
    """Each survey reads what has changed."""
    write(a="# A\n", b=AFTER_A)
    assert ("a.md",) == backlog.order(backlog.items()).ready
    write(b="# B, without anything before it\n")
    assert ("a.md", "b.md") == backlog.order(backlog.items()).ready


def test_the_focus_has_no_front_matter(backlog: Backlog, write: Write) -> None:
    """Agents read the text of the item."""
    write(b=f"{AFTER_A}\nBlue.\n", c="---\nprose\n---\nmore\n")
    assert "The file `.cuggino/backlog/b.md`, with this content:\n\n# B\n\nBlue." == backlog.focus(
        "b.md"
    )
    assert backlog.focus("c.md").endswith("content:\n\n---\nprose\n---\nmore")
    assert "B" == backlog.title("b.md")


@pytest.mark.parametrize("text", ["\nBlue.\n", ""])
def test_an_added_item_keeps_its_front_matter(backlog: Backlog, text: str) -> None:
    """The title follows it."""
    first = backlog.add("A")
    second = backlog.add("B", f"---\nafter: {first}\n---\n{text}")
    assert {second: (first,)} == backlog.order(backlog.items()).waiting
    assert "B" == backlog.title(second)
    assert backlog.focus(second).endswith(f"content:\n\n# B\n{text}".strip())


def test_front_matter_alone_is_no_item(backlog: Backlog, write: Write) -> None:
    """There is nothing to work on."""
    write(a="---\nafter: b\n---\n\n", b="# B\n")
    survey = backlog.survey()
    assert ["b.md"] == survey.items
    assert {"a.md": "empty"} == survey.problems
    with pytest.raises(ConfigError, match="is empty"):
        backlog.focus("a.md")


def test_a_long_item(backlog: Backlog, write: Write) -> None:
    """An item is blank only if all of it is."""
    write(a=f"{AFTER_A[:18]}\n{' ' * 100_000}x", b=" " * 100_000, c=f"{' ' * 100_000}x")
    assert ["a.md", "c.md"] == backlog.items()
