"""The instructions of the deliverables loop: which, with what tools, and a project's own."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, strategies as st

from cuggino.domain.deliverable_tools import TOOLS_OF, ToolName, agent_tool
from cuggino.errors import ConfigError
from cuggino.prompts import Prompts
from cuggino.prompts.instructions import (
    RUN,
    SYNC,
    Instruction,
    InstructionName,
    Workflow,
    choose_instruction,
    is_planning,
    load_instruction,
)
from cuggino.security.policy import Mode, Policy
from tests.security.judging import make_project, reason_of
from tests.vectors import not_followed, rows

NAMES: tuple[InstructionName, ...] = get_args(InstructionName)
SKIPPED = not_followed("autonoe_instructions")
NEEDED: dict[InstructionName, set[ToolName]] = {
    "initializer": {"create_deliverable"},
    "coding": {"set_deliverable_status", "list"},
    "sync": {"create_deliverable", "deprecate", "list"},
    "verify": {"set_deliverable_status", "verify", "list"},
}
ROWS = {row["id"]: row for row in rows("autonoe_instructions")}


def of_kind(kind: str) -> list[str]:
    """The cases of a kind; there is at least one."""
    ids = [key for key, row in ROWS.items() if row["kind"] == kind and key not in SKIPPED]
    assert ids
    return ids


def load(name: InstructionName, project: Path) -> Instruction:
    """The instruction for a session with the tools that the loop gives it."""
    tools: dict[str, str] = {tool: agent_tool(tool) for tool in TOOLS_OF[name]}
    return load_instruction(name, project, tools=tools)


def own(project: Path, name: str, content: bytes) -> Path:
    """The project with an instruction of its own."""
    (project / ".autonoe").mkdir(exist_ok=True)
    (project / f".autonoe/{name}.md").write_bytes(content)
    return project


def built_in(name: InstructionName, folder: Path) -> str:
    """The built-in text, as a project without one of its own gets it."""
    return load(name, folder / "nothing").text


@pytest.mark.parametrize("case", of_kind("instruction_run"))
def test_a_run_chooses_by_the_status_file(case: str) -> None:
    """Without a status file a run initialises, with one it codes."""
    row = ROWS[case]
    planned = row["input"]["status_exists"]
    assert row["expected"]["name"] == choose_instruction(RUN, is_planned=planned)


def test_a_sync_chooses_by_its_planning() -> None:
    """A sync compares first, and verifies once that is done."""
    assert "sync" == choose_instruction(SYNC, is_planned=False)
    assert "verify" == choose_instruction(SYNC, is_planned=True)


def test_a_workflow_of_ones_own_is_possible() -> None:
    """The choice follows the workflow it is given."""
    assert "sync" == choose_instruction(Workflow("sync", "coding"), is_planned=False)
    assert "coding" == choose_instruction(Workflow("sync", "coding"), is_planned=True)


@pytest.mark.parametrize("case", of_kind("model_selection"))
def test_planning_has_its_own_model(case: str) -> None:
    """The instructions that plan use the model for planning, the others the usual one."""
    row = ROWS[case]
    option = "plan_model" if is_planning(row["input"]["instruction"]) else "model"
    assert row["expected"]["option"] == option


@pytest.mark.parametrize("case", of_kind("instruction_override"))
def test_a_projects_own_text_replaces_the_built_in_one(case: str, tmp_path: Path) -> None:
    """The file that the case names, if it is there, is the whole instruction."""
    given_, expected = ROWS[case]["input"], ROWS[case]["expected"]["content"]
    if given_["exists"]:
        assert given_["override_file"] == f".autonoe/{given_['name']}.md"
        own(tmp_path, given_["name"], given_["content"].encode())
    found = load(given_["name"], tmp_path)
    text = built_in(given_["name"], tmp_path) if expected == "<builtin>" else expected
    assert (text, given_["exists"], ()) == (found.text, found.is_override, found.warnings)


@pytest.mark.parametrize("name", NAMES)
def test_a_built_in_text_speaks_of_the_tools_of_its_sessions(name: InstructionName) -> None:
    """A template uses each tool that its sessions need, under the name that the agent sees."""
    text = " ".join(load(name, Path("/nothing/there")).text.split())
    template = Prompts().template(name).read_text(encoding="utf-8")
    needed = NEEDED[name]
    assert needed == set(re.findall(r"\{\{(\w+)\}\}", template))
    assert needed <= set(TOOLS_OF[name])
    assert {agent_tool(tool) for tool in needed} == set(re.findall(r"mcp__[\w-]+", text))
    assert "{{" not in text
    assert ("list" in needed) == ("rather than read the whole status file" in text)


def test_a_tool_that_a_session_lacks_is_an_error() -> None:
    """The built-in text never sends an agent to a tool that it does not have."""
    with pytest.raises(ConfigError, match=r"coding\.md line \d+: unknown variable \{\{list\}\}"):
        load_instruction("coding", Path("/nothing"), tools={"set_deliverable_status": "x"})


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("initializer", ["bin/dev.sh", "--initial-branch=main", "`acceptanceCriteria`", "5 to 10"]),
        (
            "coding",
            ["exactly one deliverable", "verify again one or two", "browser", ".screenshots/"],
        ),
        ("sync", ["only file that you may write", "Do not commit", "nothing differs, say so"]),
        ("verify", ["only file that you may write", "Do not commit", "there are none, say so"]),
    ],
)
def test_an_agent_is_told_what_matters(name: InstructionName, words: list[str]) -> None:
    """Each text has what its sessions must know, and what all must know."""
    text = " ".join(load(name, Path("/nothing/there")).text.split())
    common = [
        "SPEC.md",
        ".autonoe-note.md",
        "Never write to `.autonoe/`",
        "Nobody is there to answer questions",
        "A tool call that is refused",
        "end",
    ]
    assert [] == [word for word in (*words, *common) if word not in text]


@pytest.mark.parametrize("name", ["coding", "verify"])
def test_blocked_is_for_causes_from_outside(name: InstructionName) -> None:
    """Who may block a deliverable is told for what, and for what not (AUT-096)."""
    text = " ".join(load(name, Path("/nothing/there")).text.split())
    causes, _, rest = text.partition("`blocked` is for a cause outside")[2].partition("It is not")
    excuses = rest.partition(" ## ")[0]
    known = ("credentials", "API key", "a service that is down", "hardware", "network")
    assert [] == [cause for cause in known if cause not in causes]
    denied = ("needs another one", "refactoring", "old debts")
    assert [] == [excuse for excuse in denied if excuse not in excuses]


MODES: list[tuple[InstructionName, Mode]] = [
    *((name, "run") for name in RUN),
    *((name, "sync") for name in SYNC),
]


@pytest.mark.parametrize(("name", "mode"), MODES)
def test_the_guard_lets_pass_what_a_text_asks_for(
    name: InstructionName, mode: Mode, tmp_path: Path
) -> None:
    """Each command that a built-in text asks for is allowed to its sessions, guarded in full."""
    project = make_project(tmp_path)
    policy = Policy(project=str(project), mode=mode)
    asked = load(name, project).text.split("## Rules")[0]
    found = set(re.findall(r"`((?:pwd|ls|git|chmod|bin/dev\.sh)\b[^`]*)`", asked))
    assert "bin/dev.sh" in found or name == "sync"
    assert {} == {line: why for line in found if (why := reason_of(line, policy))}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is blank"),
        (b"\xef\xbb\xbf \r\n\t\n", "is blank"),
        (b"ab\xffcd", "is not UTF-8 (byte 2)"),
        ("Instruction".encode("utf-16"), "is not UTF-8 (byte 0)"),
        (b"one\0two", "is not a text: it holds a NUL character"),
    ],
)
@pytest.mark.parametrize("name", NAMES)
def test_an_unusable_text_gives_the_built_in_one_and_a_warning(
    name: InstructionName, content: bytes, why: str, tmp_path: Path
) -> None:
    """A file that holds no instruction is passed over, and named with the reason."""
    found = load(name, own(tmp_path, name, content))
    assert built_in(name, tmp_path) == found.text
    assert (f".autonoe/{name}.md {why}: the built-in instruction is used",) == found.warnings
    assert not found.is_override


def test_what_is_no_file_gives_a_warning_and_never_waits(tmp_path: Path) -> None:
    """A folder, a pipe and a link to nothing are passed over with a warning."""
    folder = tmp_path / ".autonoe"
    (folder / "coding.md").mkdir(parents=True)
    os.mkfifo(folder / "sync.md")
    (folder / "verify.md").symlink_to("nowhere")
    (folder / "initializer.md").symlink_to("initializer.md")
    found: dict[str, Any] = {name: load(name, tmp_path) for name in NAMES}
    assert all(built_in(name, tmp_path) == found[name].text for name in NAMES)
    reasons = {name: found[name].warnings[0].split(".md ")[1].split(":")[0] for name in NAMES}
    assert "is not a file" == reasons["coding"] == reasons["sync"]
    assert "is a link to nothing" == reasons["verify"]
    assert "cannot be read" in reasons["initializer"]


def test_a_file_in_place_of_the_folder_is_no_instruction(tmp_path: Path) -> None:
    """Where `.autonoe` is a file the built-in text is used; others say what is wrong there."""
    (tmp_path / ".autonoe").write_text("")
    found = load("coding", tmp_path)
    assert (built_in("coding", tmp_path), ()) == (found.text, found.warnings)


def test_a_link_to_a_text_is_followed(tmp_path: Path) -> None:
    """A project may keep its instruction elsewhere and link to it."""
    (tmp_path / "mine.md").write_text("Mine.")
    (tmp_path / ".autonoe").mkdir()
    (tmp_path / ".autonoe/coding.md").symlink_to("../mine.md")
    assert "Mine." == load("coding", tmp_path).text


@given(st.text(st.characters(exclude_characters="\0\r", exclude_categories=["Cs"])))
def test_a_projects_text_is_taken_as_it_is(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    """What looks like a variable stays text; the mark in front and the ends of lines do not."""
    text = f"One {{{{list}}}} {{{{x}}}}\n{text}\n"
    project = tmp_path_factory.mktemp("project")
    for ending in ("\n", "\r\n", "\r"):
        content = b"\xef\xbb\xbf" + text.replace("\n", ending).encode()
        found = load("coding", own(project, "coding", content))
        assert (text, True, ()) == (found.text, found.is_override, found.warnings)
