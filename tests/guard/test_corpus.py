"""The corpora of commands and tool calls, row by row through the whole guard, and variants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cuggino.guard.policy import Mode, Policy
from cuggino.guard.shell.shfmt import find_shfmt
from cuggino.guard.tools import judge
from tests.guard.judging import SHFMT, Case, listed_cases, make_project, policy_of, reason_of
from tests.vectors import DATA, not_followed, rows

CORPUS = rows("guard_corpus")
FAMILIES = sorted({row["family"] for row in CORPUS})
NOT_FOLLOWED = not_followed("guard_corpus")


def corpus_policy(options: dict[str, Any], project: str) -> Policy:
    """Return the policy that a row's options describe."""
    mode: Mode = "sync" if options.get("mode") == "sync" else "run"
    extra = options["extra_commands"]
    if isinstance(extra, dict):
        allowed = [*extra.get("base", []), *extra.get(mode, [])]
    else:
        allowed = extra if mode == "run" else []
    profiles = options["profiles"]
    return Policy(
        project,
        mode=mode,
        profiles=None if profiles is None else tuple(profiles),
        extra_commands=tuple(allowed),
        pkill_targets=tuple(options.get("extra_pkill_targets") or ()),
        allow_destructive=options["allow_destructive"],
    )


def moved(value: Any, project: str) -> Any:
    """Return the value with the project's real path."""
    if isinstance(value, str):
        return value.replace("/project", project)
    if isinstance(value, dict):
        return {key: moved(item, project) for key, item in value.items()}
    return value


def decision(row: dict[str, Any], folder: Path) -> str:
    """Return the guard's decision on the row's tool call."""
    project = str(make_project(folder / "project", row.get("fs")))
    policy = corpus_policy(row["options"], project)
    cwd = moved(row["options"]["cwd"], project)
    if row["tool"] in ("Bash", "Monitor") and set(row["input"]) <= {"command", "description"}:
        command = row["input"].get("command")
        return "deny" if command and reason_of(moved(command, project), policy, cwd) else "allow"
    return judge(policy, row["tool"], moved(row["input"], project), cwd, shfmt=SHFMT).decision


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_of_a_family(family: str, tmp_path: Path) -> None:
    """Every row of the family is decided as expected, except those listed as not followed."""
    wrong = [
        (row["id"], row["command"])
        for number, row in enumerate(CORPUS)
        if row["family"] == family
        and row["id"] not in NOT_FOLLOWED
        and decision(row, tmp_path / str(number)) != row["expected"]
    ]
    assert [] == wrong


@pytest.mark.parametrize("row_id", sorted(NOT_FOLLOWED))
def test_rows_listed_as_not_followed(row_id: str, tmp_path: Path) -> None:
    """A row is listed as not followed only while it is decided otherwise."""
    row = next(row for row in CORPUS if row["id"] == row_id)
    assert row["expected"] != decision(row, tmp_path)


FILES = ("bash_security", "bash_security_oracle", "bash_security_hardening")
ROWS = {row["id"]: row for name in FILES for row in rows(name)}
UNMET = {row: why for name in FILES for row, why in not_followed(name).items()}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Create one project for all rows, none of which changes it, with a link that leaves it."""
    folder = make_project(tmp_path_factory.mktemp("corpus") / "project")
    (folder / "link").symlink_to("/etc")
    (folder / "a.txt").write_text("x", encoding="utf-8")
    return str(folder)


def vector_policy(row: dict[str, Any], project: str) -> Policy:
    """Return the policy that a row's options describe."""
    options = row["options"]
    mode: Mode = "sync" if options.get("mode") == "sync" else "run"
    extra = options.get("allowCommands") or []
    if isinstance(extra, dict):
        extra = [*extra.get("base", []), *extra.get(mode, [])]
    elif mode == "sync":
        extra = []
    needs_none = options.get("allowDestructive") and not options.get("projectDir")
    return Policy(
        "" if needs_none else project,
        mode=mode,
        profiles=tuple(row["profiles"]) if row["profiles"] else None,
        extra_commands=tuple(extra),
        pkill_targets=tuple(options.get("allowPkillTargets") or ()),
        allow_destructive=bool(options.get("allowDestructive")),
    )


def is_met(row: dict[str, Any], project: str) -> bool:
    """Return whether the row gets its decision and its reason."""
    command = (row["command"] or "").replace("/project", project)
    reason = reason_of(command, vector_policy(row, project), project) if command else ""
    allowed = row.get("recommended_allowed", row.get("allowed"))
    text = "" if allowed else (row.get("reason") or "").replace("/project", project)
    return allowed == (not reason) and text in reason


@pytest.mark.real_agent
@pytest.mark.parametrize("name", FILES)
def test_rows_of_a_file(name: str, project: str) -> None:
    """Every row gets its decision, with its text in the reason (AUT-160 to AUT-219)."""
    wrong = [row["id"] for row in rows(name) if row["id"] not in UNMET and not is_met(row, project)]
    assert [] == wrong


@pytest.mark.parametrize("row_id", sorted(UNMET))
def test_commands_listed_as_not_followed(row_id: str, project: str) -> None:
    """A row is listed as not followed only while it is decided otherwise."""
    assert not is_met(ROWS[row_id], project)


SIBLINGS = list(listed_cases(DATA / "guard_siblings.txt"))
EVERYDAY = list(listed_cases(DATA / "everyday_commands.txt"))


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


UNPROTECTED = not_followed("protection")


def protection(row: dict[str, Any]) -> tuple[str, str]:
    """Return the decision on the row's tool call, and the reason."""
    mode: Mode = "sync" if row["hook"] == "sync-write-restriction" else "run"
    # The cases name two projects; the tool's path says which.
    path = next(iter(row["tool_input"].values()), "")
    project = "/workspace" if path.startswith("/workspace") else "/project"
    policy = Policy(project=project)._replace(mode=mode)
    found = judge(policy, row["tool_name"], row["tool_input"], project, shfmt=find_shfmt())
    return found.decision, found.reason


def expected(row: dict[str, Any]) -> tuple[str, str]:
    """Return the row's expected decision, or the stricter one that it recommends."""
    decision = row.get("recommended_decision", row["decision"])
    return ("deny", row["reason"] or "") if decision == "block" else ("allow", "")


def is_protected(row: dict[str, Any]) -> bool:
    """Return whether the decision and the reason are those of the row."""
    wanted, found = expected(row), protection(row)
    return (
        wanted[0] == found[0] and wanted[1] in found[1] and bool(found[1]) == (wanted[0] == "deny")
    )


@pytest.mark.parametrize("row", rows("protection"), ids=lambda row: row["id"])
def test_cases(row: dict[str, Any]) -> None:
    """Each case is met, except those listed with a reason."""
    assert (row["id"] not in UNPROTECTED) == is_protected(row)


def test_reasons_are_verbatim() -> None:
    """A reason that a case specifies for a file tool is used verbatim."""
    told = [row for row in rows("protection") if row["reason"] and row["tool_name"] != "Bash"]
    assert len(told) > 5
    for row in told:
        assert row["reason"] == protection(row)[1]
