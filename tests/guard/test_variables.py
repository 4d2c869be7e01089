"""Variables with known values: those that a run passes to its agents as `CUGGINO_*`."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.guard.policy import Policy
from cuggino.guard.roles import role_policy
from cuggino.guard.shell.known import is_plain
from cuggino.guard.shell.shfmt import find_shfmt
from cuggino.guard.tools import judge

PLAN = ".cuggino/wip/x.plan.md"


@pytest.fixture
def planner(tmp_path: Path) -> Policy:
    """Return the policy of a planning agent that knows the path of its plan."""
    project = tmp_path / "project"
    (project / ".cuggino/wip").mkdir(parents=True)
    policy = role_policy("planning", project=project, level="roles", plan=project / PLAN)
    known = (f"CUGGINO_PLAN_FILE={project / PLAN}", "CUGGINO_SPACED=a b")
    return policy._replace(variables=known)


def decision(policy: Policy, command: str) -> str:
    said = judge(policy, "Bash", {"command": command}, policy.project, shfmt=find_shfmt())
    return said.decision


@pytest.mark.parametrize(
    "command",
    [
        'echo x > "$CUGGINO_PLAN_FILE"',
        "echo x > $CUGGINO_PLAN_FILE",
        "echo x > ${CUGGINO_PLAN_FILE}",
        "cat > \"${CUGGINO_PLAN_FILE}\" <<'E'\n# Plan\nE",
        "sh -c 'echo x > \"$CUGGINO_PLAN_FILE\"'",
    ],
)
def test_known_values(planner: Policy, command: str) -> None:
    """A write through a known variable is allowed, however the variable is spelled."""
    assert "allow" == decision(planner, command)
    elsewhere = planner._replace(variables=("CUGGINO_PLAN_FILE=src/x",))
    assert "deny" == decision(elsewhere, command)


@pytest.mark.parametrize(
    "command",
    [
        'echo x > "${CUGGINO_PLAN_FILE}.bak"',
        'echo x > "${CUGGINO_PLAN_FILE%.md}"',
        'echo x > "$CUGGINO_OTHER"',
        "echo x > $CUGGINO_SPACED",
        "CUGGINO_PLAN_FILE=src/x; echo x > $CUGGINO_PLAN_FILE",
        "CUGGINO_PLAN_FILE=src/x echo x > $CUGGINO_PLAN_FILE",
        'export CUGGINO_PLAN"_FILE"=src/x; echo x > $CUGGINO_PLAN_FILE',
        "read CUGGINO_PLAN_FILE <<< src/x; echo x > $CUGGINO_PLAN_FILE",
        "printf -v CUGGINO_PLAN_FILE src/x; echo x > $CUGGINO_PLAN_FILE",
        "for CUGGINO_PLAN_FILE in src/x; do echo x > $CUGGINO_PLAN_FILE; done",
        "env CUGGINO_PLAN_FILE=src/x sh -c 'echo x > $CUGGINO_PLAN_FILE'",
        "unset CUGGINO_PLAN_FILE; echo x > ${CUGGINO_PLAN_FILE}",
        "f() { local CUGGINO_PLAN_FILE=src/x; echo x > $CUGGINO_PLAN_FILE; }; f",
        "declare -n r=CUGGINO_PLAN_FILE; r=src/x; echo x > $CUGGINO_PLAN_FILE",
    ],
)
def test_no_command_may_change_a_known_value(planner: Policy, command: str) -> None:
    """Level `full` denies other files, other variables, and every way to change the value."""
    assert "deny" == decision(planner._replace(level="full"), command)


@pytest.mark.parametrize(
    ("expected", "value"),
    [
        (True, "/a/b-c_d.md"),
        (False, ""),
        (False, "a b"),
        (False, "a*"),
        (False, "~"),
        (False, "$x"),
    ],
)
def test_only_single_words_are_substituted(expected: bool, value: str) -> None:
    """A value with blanks, patterns or expansions is not substituted."""
    assert expected is is_plain(value)


def test_variables_round_trip(planner: Policy) -> None:
    """The hook gets the variables of the agent's program."""
    assert planner == Policy.from_json(planner.to_json())
    assert f"{planner.project}/{PLAN}" == planner.known()["CUGGINO_PLAN_FILE"]
    with pytest.raises(ValueError, match="no value"):
        Policy.from_json(planner._replace(variables=("X",)).to_json())
