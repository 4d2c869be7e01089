"""The share of everyday commands refused to each role with a fitting profile."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.guard.policy import Policy
from tests.guard.daily import LIST, counts, make_daily_project
from tests.guard.judging import Case, listed_cases, reason_of

CASES = list(listed_cases(LIST))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_daily_project(tmp_path_factory.mktemp("daily") / "home")


def test_the_list_is_long_enough() -> None:
    """There are at least 600 different commands."""
    assert len({case.command for case in CASES}) >= 600
    assert {"looks", "works"} == {case.section for case in CASES}


@pytest.mark.parametrize(
    "cases", [CASES[::4], pytest.param(CASES, marks=pytest.mark.real_agent)], ids=["some", "all"]
)
def test_few_commands_are_refused(project: Path, cases: list[Case]) -> None:
    """The level `full` refuses at most 5 % to any role, and `roles` none of them."""
    found = list(counts(cases, project))
    assert 16 == len(found)
    allowed = {"full": 0.05, "roles": 0.0}
    assert [] == [str(count) for count in found if count.share > allowed[count.level]]


def test_refusals_are_named_with_their_reasons(project: Path) -> None:
    """The message lists what stays refused, such as removing sources."""
    removes = "rm -rf node_modules package-lock.json"
    cases = [case for case in CASES if case.command in (removes, "git status")]
    [count] = [one for one in counts(cases, project, ["full"]) if one.role == "implementing"]
    assert [removes] == list(count.refused)
    assert "is not in the allowlist" in str(count)


def test_the_same_commands_without_the_profile(tmp_path: Path) -> None:
    """Everyday tools are the user's choice: without `extended` they stay refused."""
    policy = Policy(str(make_daily_project(tmp_path / "home")))
    commands = ("kill 12345", "mktemp", "./scripts/build.sh", "source .env", "rm -rf dist",
                "find . -name '*.pyc' -delete", "docker compose ps", "bash scripts/x.sh",
                "PYTHONPATH=src pytest", 'touch "$f"')  # fmt: skip
    assert [] == [command for command in commands if not reason_of(command, policy)]


def test_only_what_builds_make_is_removed_with_the_profile(tmp_path: Path) -> None:
    """`extended` removes artefacts; sources need `allowDestructive`."""
    policy = Policy(str(make_daily_project(tmp_path / "home")), extra_commands=("extended",))
    keeps = (
        *("find . -delete", "find src -delete", "find . -name '*.py' -delete", "rm -rf src dist"),
        *("find . -not -name '*.pyc' -delete", "find . ! -name '*.log' -exec rm {} +"),
        *("find . -name '*.log' -o -delete", "find . \\( -name '*.log' -o -type f \\) -delete"),
        *("find dist -exec rm -rf {} src \\;", "find .git/build -delete", "rm -rf dist/../src"),
        *("rm -rf /etc/build", "rm -rf ~/tmp", "rm -rf .git/tmp", "mv dist src", "rm -rf link/tmp"),
        *("find -L dist -delete", "rm src/a.py", "rm -rf ../dist", "rm -rf /tmp/../etc"),
    )
    (tmp_path / "home" / "project" / "link").symlink_to("/etc")
    assert [] == [command for command in keeps if not reason_of(command, policy)]
    removes = (
        *("find . \\( -name '*.pyc' -o -name '*.log' \\) -delete", "find dist -exec rm -rf {} +"),
        *("find . -path '*/dist/*' -delete", "rm -rf packages/*/dist", 'rm -rf "$TMPDIR/x"'),
    )
    assert [] == [command for command in removes if reason_of(command, policy)]
