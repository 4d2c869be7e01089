"""The templates and their renderer."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from cuggino.agents.base import Role
from cuggino.errors import ConfigError
from cuggino.events import CheckCommandOutput
from cuggino.prompts import Prompts, prompt_version, render
from cuggino.stages import (
    AUDIT_VARIABLES,
    CONFLICT,
    CONFLICT_VARIABLES,
    JUDGE,
    JUDGE_VARIABLES,
    ROLE_VARIABLES,
    Services,
    StageOptions,
    Supervision,
    Turn,
    Workplace,
    implementing_stage,
    planning_stage,
    reviewing_stage,
    role_markers,
)
from cuggino.storage import Session, Workspace
from cuggino.testing import InMemoryAgent, Marbles
from tests.vectors import each

ROLES = tuple(ROLE_VARIABLES)
CHECK = CheckCommandOutput(iteration=1, output="3 failed", exit_code=1)
WAITS = Turn(may_wait=True)


class Recording(Prompts):
    """A renderer that records its calls."""

    def __init__(self, overrides: Path | None = None) -> None:
        super().__init__(overrides)
        self.variables: dict[str, str] = {}

    def render(self, role: str, variables: object) -> str:
        assert isinstance(variables, dict)
        self.variables = variables
        return super().render(role, variables)


def render_prompt(
    role: Role, folder: Path, *, overrides: Path | None = None
) -> tuple[str, dict[str, str]]:
    """Return the system prompt that the loop passes to an agent of the role, and its variables."""
    prompts, agent = Recording(overrides), InMemoryAgent({})
    (folder / "docs/specs").mkdir(parents=True, exist_ok=True)
    options = StageOptions(cwd=folder, specs_path="docs/specs")
    workspace = Workspace(folder)
    place = Workplace(
        services=Services(agent=agent, workspace=workspace, prompts=prompts),
        options=options,
        session=Session("the-id", workspace.wip),
        supervision=Supervision(),
        focus="THE FOCUS",
        is_open=False,
    )
    match role:
        case "planning":
            stage = planning_stage(place, review="THE REVIEW")
        case "implementing":
            stage = implementing_stage(place, check=CHECK, turn=WAITS)
        case _:
            stage = reviewing_stage(place, check=CHECK, baseline="BASE", finished=False, turn=WAITS)

    Marbles().record(stage)
    (spawned,) = agent.spawned
    return spawned.system_prompt or "", prompts.variables


@pytest.mark.parametrize("role", ROLES)
def test_a_template_uses_the_variables_of_its_role(role: Role, tmp_path: Path) -> None:
    """The prompt has no variable left, its own markers and none of other roles."""
    text, variables = render_prompt(role, tmp_path)
    template = Prompts().template(role).read_text()
    assert set(re.findall(r"\{\{(\w+)\}\}", template)) <= set(variables)
    assert set(ROLE_VARIABLES[role]) == set(variables)
    assert "{{" not in text
    tags = {cls.tag_name() for cls in role_markers(role)}
    assert tags == set(re.findall(r"`<([A-Z_]+)>", text))


@pytest.mark.parametrize(
    ("role", "words"),
    [
        (
            "planning",
            ["THE FOCUS", "THE REVIEW", "docs/specs", ".cuggino/wip/the-id.planning/plan.md"],
        ),
        ("implementing", ["exited with code 1", "3 failed", ".cuggino/wip/the-id.md"]),
        (
            "reviewing",
            [
                "THE FOCUS",
                "3 failed",
                "`git diff --text BASE..HEAD`",
                "not finished yet",
                ".cuggino/wip/the-id.reviewing/review.md",
            ],
        ),
    ],
)
def test_required_statements(role: Role, words: list[str], tmp_path: Path) -> None:
    """The prompt of a role has everything that its agent must know."""
    text, _ = render_prompt(role, tmp_path)
    assert [] == [word for word in words if word not in text]


def test_every_role_has_a_template() -> None:
    """Each role of the coding loop has a file."""
    folder = Prompts().template("planning").parent
    assert {"planning", "implementing", "reviewing"} == set(ROLES) == set(ROLE_VARIABLES)
    assert set(ROLES) <= {file.stem for file in folder.iterdir()}


@pytest.mark.parametrize(
    ("name", "variables", "tags"),
    [
        (CONFLICT, CONFLICT_VARIABLES, {"NOTE", "DONE", "SPEC_ISSUE"}),
        (JUDGE, JUDGE_VARIABLES, {"APPROVED"}),
        ("audit", AUDIT_VARIABLES, {"TO_BE_DISCUSSED"}),
    ],
)
def test_other_templates(name: str, variables: Iterable[str], tags: set[str]) -> None:
    """A template uses its variables, and names the markers that its agent may emit."""
    template = Prompts().template(name).read_text()
    assert set(re.findall(r"\{\{(\w+)\}\}", template)) <= set(variables)
    assert tags == set(re.findall(r"`<([A-Z_]+)>", template))


@pytest.mark.parametrize("role", ROLES)
def test_a_project_overrides_a_template(role: Role, tmp_path: Path) -> None:
    """A file with the role's name in the project's folder is used, with the same variables."""
    (tmp_path / f"{role}.md").write_text("Mine: {{focus}} in {{ specs_path }}.")
    assert "Mine: THE FOCUS in docs/specs." == render_prompt(role, tmp_path, overrides=tmp_path)[0]
    other = next(name for name in ROLES if name != role)
    assert (
        render_prompt(other, tmp_path)[0] == render_prompt(other, tmp_path, overrides=tmp_path)[0]
    )


def test_an_unknown_variable_is_an_error_with_its_location(tmp_path: Path) -> None:
    """The error has the file, the line, the variable and the known ones."""
    file = tmp_path / "planning.md"
    file.write_text("one {{focus}}\ntwo\nthree {{focsu}} {{other}}\n")
    with pytest.raises(ConfigError) as caught:
        Prompts(tmp_path).render("planning", {"specs_path": "s", "focus": "f"})
    assert f"{file} line 3: unknown variable {{{{focsu}}}}" == caught.value.message
    assert "variables of this role: focus, specs_path" == caught.value.hint


def test_an_unreadable_template_is_an_error(tmp_path: Path) -> None:
    """A template that is a folder or not UTF-8 is an error with its path."""
    (tmp_path / "planning.md").mkdir()
    (tmp_path / "reviewing.md").write_bytes(b"\xff")
    for role in ("planning", "reviewing"):
        with pytest.raises(ConfigError, match=rf"{role}\.md cannot be read"):
            Prompts(tmp_path).render(role, {})


@given(st.text())
def test_values_are_inserted_verbatim(value: str) -> None:
    """A value that looks like a variable, or like a pattern, stays text."""
    value = f"{value}{{{{b}}}}\\1"
    expected = f"-{value}-"
    assert expected == render("-{{a}}-", {"a": value, "b": "never"}, name="t")


@each("text", ["{a}", "{{}}", "{{ }}", "{{1a}}", "{{a b}}", "{{a", "{ {a}}", "$a"])
def test_other_braces_stay(text: str) -> None:
    """Only a name between double braces is a variable."""
    assert text == render(text, {}, name="t")


def test_the_version_of_all_prompts(tmp_path: Path) -> None:
    """Each prompt of the project that replaces a built-in one makes another version."""
    overrides = tmp_path / ".cuggino" / "prompts"
    files = {
        overrides / "planning.md": "Plan.",
        overrides / "reviewing.md": "Plan.",
        tmp_path / ".autonoe" / "coding.md": "Code.",
        tmp_path / "PLAN.PROMPT.md": "Plan.",
    }
    versions = [prompt_version(tmp_path, overrides)]
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        versions.append(prompt_version(tmp_path, overrides))
    assert len(set(versions)) == len(files) + 1
    assert {8} == set(map(len, versions))
    (tmp_path / "OTHER.md").write_text("Plan.")
    assert versions[-1] == prompt_version(tmp_path, overrides)
    assert versions[-1] != prompt_version(tmp_path, overrides, build_prompt="OTHER.md")
    for path in files:
        path.unlink()
    assert versions[0] == prompt_version(tmp_path, overrides)
