"""Variants of the corpus with other flags, spellings and wrappers, and everyday commands."""

from __future__ import annotations

import pytest

from tests.guard.judging import Case, listed_cases, make_project, policy_of, reason_of
from tests.vectors import DATA

SIBLINGS = list(listed_cases(DATA / "guard_siblings.txt"))
EVERYDAY = list(listed_cases(DATA / "everyday_commands.txt"))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Create one project for all commands, with a link that leaves it."""
    folder = make_project(tmp_path_factory.mktemp("siblings") / "project")
    (folder / "link").symlink_to("/etc")
    (folder / "a.txt").write_text("x", encoding="utf-8")
    return str(folder)


def wrong(cases: list[Case], project: str) -> list[Case]:
    """Return the cases whose decision differs from that of their section."""
    found = []
    for case in cases:
        reason = reason_of(case.command, policy_of(case.section, project))
        if bool(reason) != case.section.endswith("deny"):
            found.append(case)
    return found


@pytest.mark.real_agent
@pytest.mark.parametrize("section", sorted({case.section for case in SIBLINGS}))
def test_variants(section: str, project: str) -> None:
    """No spelling of a denied command is allowed, at either level."""
    assert [] == wrong([case for case in SIBLINGS if case.section == section], project)


@pytest.mark.real_agent
@pytest.mark.parametrize("section", sorted({case.section for case in EVERYDAY}))
def test_everyday_commands(section: str, project: str) -> None:
    """Everyday commands are allowed, except those listed."""
    assert [] == wrong([case for case in EVERYDAY if case.section == section], project)


def test_most_everyday_commands_are_allowed() -> None:
    """The level `full` denies at most one everyday command in four."""
    full = [case for case in EVERYDAY if case.section.startswith("full")]
    refused = [case for case in full if case.section.endswith("deny")]
    assert len(refused) < len(full) / 4
