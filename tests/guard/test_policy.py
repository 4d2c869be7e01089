"""Policies: as JSON for the hook, of the roles, with known variables, and as a sandbox."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cuggino.config import Config, configured_policy, configured_sandbox
from cuggino.guard import sandbox as sandboxes
from cuggino.guard.paths import Paths
from cuggino.guard.policy import PROTECTED, Policy
from cuggino.guard.roles import PERMISSION_SETS, PERMISSIONS, ROLES, PermissionSet, role_policy
from cuggino.guard.sandbox import CACHES, DOMAINS, sandbox_for
from cuggino.guard.shell.known import is_plain
from cuggino.guard.shell.shfmt import find_shfmt
from cuggino.guard.tools import judge

GIVEN = Policy(
    "/project",
    level="roles",
    role="planning",
    profiles=("node",),
    extra_commands=("make",),
    pkill_targets=("vite",),
    read_only=(".specs",),
    writable=("docs",),
    granted=("plan.md",),
    rules=("WebSearch",),
    variables=("CUGGINO_PLAN_FILE=plan.md",),
)
WRONG: tuple[tuple[str, Any], ...] = (
    ("level", "none"),
    ("level", None),
    ("mode", "any"),
    ("mode", None),
    ("project", None),
    ("role", 1),
    ("profiles", "node"),
    ("profiles", [1]),
    ("extra_commands", None),
    ("extra_commands", "rm"),
    ("pkill_targets", None),
    ("pkill_targets", {"vite": 1}),
    ("protected", None),
    ("protected", ".git"),
    ("read_only", None),
    ("writable", "docs"),
    ("writable", [None]),
    ("granted", None),
    ("granted", "plan.md"),
    ("apart", None),
    ("apart", "../project"),
    ("variables", None),
    ("variables", ["CUGGINO_PLAN_FILE"]),
    ("variables", ["X"]),
    ("allow_destructive", 1),
    ("allow_destructive", "yes"),
    ("confined", None),
    ("confined", 1),
    ("rules", "WebSearch"),
    ("rules", [0]),
)


def test_round_trip(project: Path, planner: Policy) -> None:
    """Lists become tuples again, absent values stay absent, and each role keeps its name."""
    open_one = GIVEN._replace(profiles=None, writable=None, mode="sync", level="full")
    for policy in (GIVEN, open_one, planner, *(made(role, project) for role in PERMISSION_SETS)):
        assert policy == Policy.from_json(policy.to_json())
    assert [*PERMISSION_SETS] == [made(role, project).role for role in PERMISSION_SETS]
    assert f"{planner.project}/{PLAN}" == planner.known()["CUGGINO_PLAN_FILE"]


@pytest.mark.parametrize(("key", "value"), WRONG)
def test_invalid_values(key: str, value: object) -> None:
    """A policy of a later or broken version is refused, never widened."""
    with pytest.raises(ValueError, match=r"is no|no value|unknown"):
        Policy.from_json(json.dumps({**GIVEN._asdict(), key: value}))


@pytest.mark.parametrize("key", Policy._fields)
def test_exactly_these_fields(key: str) -> None:
    """Every field is required, and no other is accepted."""
    data = GIVEN._asdict()
    with pytest.raises(ValueError, match="no policy of this version"):
        Policy.from_json(json.dumps({**data, f"{key}_x": data[key]}))
    del data[key]
    with pytest.raises(ValueError, match="no policy of this version"):
        Policy.from_json(json.dumps(data))


def test_other_json_is_refused() -> None:
    """A list, a string and empty input are refused."""
    for text in ("[]", '"x"', "null", ""):
        with pytest.raises(ValueError, match=r"no policy|Expecting"):
            Policy.from_json(text)


PLACES = (
    "src/a.py", "README.md", ".specs/a.md", ".cuggino/wip/x.plan.md", ".cuggino/wip/x.review.md",
    ".cuggino/wip/x.md", ".cuggino/backlog/001.md", ".cuggino/spec-issues/a.md",
    ".cuggino/tbd/a.md", ".cuggino/memory.md", ".cuggino/journal/x", ".cuggino/prompts/a.md",
    ".autonoe/status.json", ".autonoe-note.md", ".git/config", ".claude/settings.json",
)  # fmt: skip
"""Every kind of place in the table."""

SOURCES = {"src/a.py", "README.md", ".autonoe-note.md"}
MAY: dict[PermissionSet, set[str]] = {
    "planning": {".cuggino/wip/x.plan.md"},
    "implementing": SOURCES,
    "reviewing": {".cuggino/wip/x.review.md"},
    "audit": set(),
    "pm": {
        ".specs/a.md", ".cuggino/backlog/001.md", ".cuggino/spec-issues/a.md",
        ".cuggino/tbd/a.md", ".cuggino/memory.md",
    },
    "deliver": SOURCES | {".specs/a.md"},
    "verify": {".autonoe-note.md"},
    "sync": {".autonoe-note.md"},
}  # fmt: skip


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Create a project next to others, outside the temporary folders."""
    root = tmp_path / "home" / "project"
    for folder in ("src", ".specs", ".cuggino/wip", ".cuggino/backlog", ".git"):
        (root / folder).mkdir(parents=True)
    return root


def made(role: PermissionSet, project: Path, *, specs: str = ".specs") -> Policy:
    """Return the policy of a role in the project."""
    wip = project / ".cuggino" / "wip"
    return role_policy(
        role,
        project=project,
        level="roles",
        specs=specs,
        plan=wip / "x.plan.md",
        review=wip / "x.review.md",
        allow_destructive=True,
    )


@pytest.mark.parametrize("role", PERMISSION_SETS)
def test_writable_places_of_a_role(role: PermissionSet, project: Path) -> None:
    """Of all places, exactly those of the role's row may be written and removed."""
    guard = Paths(made(role, project), temporary=[])
    home = [str(project)]
    assert MAY[role] == {place for place in PLACES if not guard.write(place, home)}
    assert MAY[role] == {place for place in PLACES if not guard.remove(place, home)}


def test_every_role_has_permissions() -> None:
    """The permissions of every role are one of the sets."""
    assert set(ROLES) == set(PERMISSIONS)
    assert set(PERMISSIONS.values()) == set(PERMISSION_SETS) - {"pm"}


def test_verifying_sessions_are_never_destructive(project: Path) -> None:
    """`verify` and `sync` allow nothing destructive, even if the user does (AUT-223)."""
    for role in PERMISSION_SETS:
        policy = made(role, project)
        assert (role in ("verify", "sync")) == (policy.mode == "sync")
        assert (policy.mode == "run") == policy.allow_destructive


def test_user_settings(project: Path) -> None:
    """Profiles, programs and pkill targets of the user are in the policy."""
    policy = role_policy(
        "deliver",
        project=project,
        level="full",
        profiles=["node"],
        extra_commands=["make"],
        pkill_targets=["vite"],
    )
    assert ("full", ("node",), ("make",), ("vite",)) == (
        policy.level,
        policy.profiles,
        policy.extra_commands,
        policy.pkill_targets,
    )


def test_linked_specifications(project: Path) -> None:
    """A linked folder is resolved when the policy is made; a link made later grants nothing."""
    (project / "docs").mkdir()
    (project / "specs").symlink_to("docs")
    policy = made("pm", project, specs="specs")
    home = [str(project)]
    assert "" == Paths(policy, temporary=[]).write("specs/a.md", home)
    (project / "specs").unlink()
    (project / "specs").symlink_to("src")
    assert Paths(policy, temporary=[]).write("specs/a.py", home)
    assert Paths(policy, temporary=[]).write("specs", home)


@pytest.mark.parametrize("specs", ["../shared", ".claude/specs", ".cuggino/specs"])
def test_specifications_in_unusual_places(project: Path, specs: str) -> None:
    """The manager may write the specifications wherever they are; the implementer may not."""
    home = [str(project)]
    assert "" == Paths(made("pm", project, specs=specs), temporary=[]).write(f"{specs}/a.md", home)
    guard = Paths(made("implementing", project, specs=specs), temporary=[])
    assert guard.write(f"{specs}/a.md", home)


def test_a_project_that_is_its_own_specification_can_be_implemented(project: Path) -> None:
    """If the specifications are the project itself, source can still be written."""
    guard = Paths(made("implementing", project, specs="."), temporary=[])
    assert "" == guard.write("src/a.py", [str(project)])


def test_a_linked_project_is_the_same_project(project: Path) -> None:
    """A policy for a linked project covers the real folder, and the reverse."""
    link = project.parent / "link"
    link.symlink_to(project)
    guard = Paths(made("reviewing", link), temporary=[])
    for folder in (project, link):
        assert "" == guard.write(f"{folder}/.cuggino/wip/x.review.md", [])
        assert guard.write(f"{folder}/src/a.py", [])


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


@pytest.fixture
def sandboxed(tmp_path: Path) -> Path:
    wip = tmp_path / ".cuggino" / "wip"
    wip.mkdir(parents=True)
    for name in ("a.md", "a.plan.md", "b.md"):
        (wip / name).write_text("")
    (tmp_path / ".cuggino" / "lock").write_text("")
    return tmp_path.resolve()


def test_protected_files(sandboxed: Path) -> None:
    """Protected files and the specs are denied, existing or not; `.git` is left to commits."""
    policy = role_policy("implementing", project=sandboxed, level="roles")
    sandbox = sandbox_for(policy)
    names = [name for name in PROTECTED if name != ".git"]
    assert tuple(str(sandboxed / name) for name in (*names, ".specs")) == sandbox.deny_write
    assert DOMAINS == sandbox.domains


def test_scratch_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scratch folders are writable, except one that contains the project, by any of its names."""
    for name in ("scratch", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "scratch")
    places = [str(tmp_path / name) for name in ("scratch", "link", "other")]
    monkeypatch.setattr(sandboxes, "SCRATCH", tuple(places))

    def writable(sandboxed: Path) -> tuple[str, ...]:
        policy = role_policy("implementing", project=sandboxed, level="roles")
        return sandbox_for(policy).allow_write

    assert (*places, *CACHES) == writable(tmp_path / "project")
    assert (places[2], *CACHES) == writable(tmp_path / "scratch" / "project")
    assert (places[2], *CACHES) == writable(tmp_path / "link" / "project")


def test_a_granted_file_can_be_written(sandboxed: Path) -> None:
    """In a folder with a role's file, all other entries are denied."""
    wip = sandboxed / ".cuggino" / "wip"
    plan = wip / "a.plan.md"
    policy = role_policy("planning", project=sandboxed, level="full", plan=plan)
    denied = [Path(path) for path in sandbox_for(policy).deny_write]
    assert not [path for path in denied if plan.is_relative_to(path)]
    expected = [wip.parent / "lock", wip / "a.md", wip / "b.md"]
    assert expected == [path for path in denied if path.is_relative_to(wip.parent)]
    assert sandboxed / ".cuggino.json" in denied


def test_more_hosts(sandboxed: Path) -> None:
    """The user's hosts follow the built-in ones, without duplicates."""
    policy = role_policy("implementing", project=sandboxed, level="roles")
    assert (*DOMAINS, "*.example.com") == sandbox_for(
        policy, domains=["*.example.com", "pypi.org", "*.example.com"]
    ).domains


@pytest.mark.parametrize(
    ("settings", "is_on"),
    [({}, True), ({"guard": "full"}, True), ({"sandbox": False}, False), ({"guard": "off"}, False)],
)
def test_when_the_sandbox_is_on(settings: dict[str, object], is_on: bool, sandboxed: Path) -> None:
    """The sandbox is on by default with the guard, and off without it or by its own key."""
    config = Config.model_validate(settings)
    policy = configured_policy(config, "implementing", project=sandboxed)
    assert is_on == (configured_sandbox(config, policy) is not None)
