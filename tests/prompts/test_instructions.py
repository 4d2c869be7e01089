"""Prompts of the plan/build loop, and the instructions of the deliverables loop."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, strategies as st

from cuggino.domain.deliverable_tools import TOOLS_OF, ToolName, agent_tool
from cuggino.errors import ConfigError, StorageError
from cuggino.guard.policy import Mode, Policy
from cuggino.prompts import Prompts
from cuggino.prompts.deliver import Instruction, choose_instruction, is_planning, load_instruction
from cuggino.prompts.overriding import (
    BUILD_PROMPT,
    PLAN_PROMPT,
    RUN,
    SYNC,
    InstructionName,
    Workflow,
)
from cuggino.prompts.plan_build import (
    VERIFY_JOB_VARIABLES,
    PromptNotFound,
    build_verification_prompt,
    init_plan_build,
    job_verification_prompt,
    read_prompt,
)
from tests.guard.judging import make_project, reason_of
from tests.vectors import each, not_followed, rows

ROWS = {row["id"]: row for row in rows("lopen_state") if row["kind"] == "load_prompt"}
JOBS = "docs/requirements/jobs-to-be-done.json"


def template_text(name: str) -> str:
    """Return the text of a template with its whitespace collapsed."""
    return " ".join(Prompts().template(name).read_text(encoding="utf-8").split())


def verification(**given_: str | None) -> str:
    """Return the prompt for the verification of a job."""
    values: dict[str, Any] = {
        "job_id": "J1",
        "requirement_code": "REQ-1",
        "description": "d",
        "facts": "- f\n",
    }
    return job_verification_prompt(Prompts(), **{**values, **given_})


@pytest.mark.parametrize("case", ROWS)
def test_a_prompt_is_read(case: str, tmp_path: Path) -> None:
    """Each recorded prompt is read verbatim; a missing one is an error with its path."""
    row = ROWS[case]
    for name, text in row.get("files", {}).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    if "abs_file" in row:
        (elsewhere / row["abs_file"]["name"]).write_text(row["abs_file"]["content"])
    path = row["path"].replace("<ABS>", str(elsewhere))
    if "error" in row:
        with pytest.raises(PromptNotFound) as caught:
            read_prompt("plan", path, tmp_path)
        assert f"Plan prompt not found: {row['error']}" == caught.value.message
    else:
        assert row["expected"] == read_prompt("plan", path, tmp_path)


def test_a_missing_prompt_names_the_expected_file(tmp_path: Path) -> None:
    """The error has the original's text, and the hint names the file."""
    with pytest.raises(PromptNotFound) as caught:
        read_prompt("build", BUILD_PROMPT, tmp_path)
    assert "Build prompt not found: Prompt file not found: BUILD.PROMPT.md" == caught.value.message
    assert "Expected file: BUILD.PROMPT.md" == caught.value.hint
    with pytest.raises(PromptNotFound):
        read_prompt("build", "no/such/folder.md", tmp_path)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "blank"),
        (b"\xef\xbb\xbf \r\n", "blank"),
        (b"a\xff", "byte 1: not UTF-8"),
        (b"a\0b", "contains a NUL character"),
    ],
)
def test_an_unusable_prompt(content: bytes, why: str, tmp_path: Path) -> None:
    """An invalid prompt is an error with the reason, different from a missing one."""
    (tmp_path / PLAN_PROMPT).write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        read_prompt("plan", PLAN_PROMPT, tmp_path)
    assert caught.value.message.startswith("Plan prompt PLAN.PROMPT.md: ")
    assert why in caught.value.message
    assert not isinstance(caught.value, PromptNotFound)


def test_a_folder_or_pipe_is_rejected(tmp_path: Path) -> None:
    """A pipe or a folder is rejected without blocking."""
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with pytest.raises(ConfigError, match="not a regular file"):
            read_prompt("plan", name, tmp_path)


@given(st.text(st.characters(exclude_characters="\0\r", exclude_categories=["Cs"])))
def test_a_prompt_is_sent_verbatim(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    """Text that looks like a variable stays; byte order mark and line endings are normalized."""
    text = f"One {{{{job_id}}}}\n{text}\n"
    folder = tmp_path_factory.mktemp("project")
    for ending in ("\n", "\r\n", "\r"):
        content = b"\xef\xbb\xbf" + text.replace("\n", ending).encode()
        (folder / PLAN_PROMPT).write_bytes(content)
        assert text == read_prompt("plan", PLAN_PROMPT, folder)


def test_init_creates_missing_files(tmp_path: Path) -> None:
    """Both prompts and the jobs file are created and readable; a second call does nothing."""
    assert (PLAN_PROMPT, BUILD_PROMPT, JOBS) == init_plan_build(tmp_path)
    assert read_prompt("plan", PLAN_PROMPT, tmp_path).startswith("# Plan\n")
    assert read_prompt("build", BUILD_PROMPT, tmp_path).startswith("# Build\n")
    assert () == init_plan_build(tmp_path)


def test_init_overwrites_nothing(tmp_path: Path) -> None:
    """Files, folders and dangling links stay as they are; the paths are configurable."""
    (tmp_path / "docs/requirements").mkdir(parents=True)
    (tmp_path / JOBS).write_text("{broken")
    (tmp_path / "p.md").symlink_to("nowhere")
    assert ("deep/b.md",) == init_plan_build(tmp_path, plan_path="p.md", build_path="deep/b.md")
    assert "{broken" == (tmp_path / JOBS).read_text()
    assert "nowhere" == os.readlink(tmp_path / "p.md")  # noqa: PTH115
    (tmp_path / PLAN_PROMPT).mkdir()
    assert (BUILD_PROMPT,) == init_plan_build(tmp_path)


def test_init_reports_write_errors(tmp_path: Path) -> None:
    """A file in place of a folder is a storage error."""
    (tmp_path / "docs").write_text("")
    with pytest.raises(StorageError, match="jobs-to-be-done"):
        init_plan_build(tmp_path)


@each(
    "name, words",
    [
        (
            "plan_prompt",
            [
                "You build nothing",
                "Study every `docs/requirements/**/SPECIFICATION.md`",
                "Of each job that is not done",
                "Let sub-agents search",
                "`TODO` and `FIXME`",
                "Only tests that cover it and pass prove that",
                "Each failure becomes a job, before all others",
                "`docs/requirements/<module>/RESEARCH.md`",
                "with the next free code",
                "A new module is a new folder",
                "the index of the specifications",
                "At most 100",
                "take out jobs that are done",
                "Never invent one",
                "Do not create `lopen.loop.done`",
                *("`priority`", '"requirementCode"', '"partialImplementation"', "Atomic"),
            ],
        ),
        (
            "build_prompt",
            [
                "On `main` or `master` stop at once",
                "smallest `priority`",
                "`SPECIFICATION.md` that has its `requirementCode`",
                "`RESEARCH.md`",
                "Make sure that it is not done yet",
                "`docs/requirements/IMPLEMENTATION_PLAN.md`",
                "keep it short",
                "sub-agents",
                "they are never optional",
                *("tutorial", "how-to", "reference", "explanation"),
                "A job without documentation is not done",
                "`type(scope): text`",
                "becomes a job of its own, before all others",
                "`AGENTS.md`",
                "If every step of the plan and every job is done, create the file",
                "`lopen.loop.done`",
                "Never invent one",
                "Verification findings",
            ],
        ),
    ],
)
def test_required_statements(name: str, words: list[str]) -> None:
    """The built-in prompts have every step of their phase, and no variables."""
    text = template_text(name)
    assert [] == [word for word in (*words, "Nobody is there to answer") if word not in text]
    assert "{{" not in text


def test_the_verifying_agent_gets_everything(tmp_path: Path) -> None:
    """Its prompt has the job, the facts, the commands, the five questions and the format."""
    text = verification(
        description="Keep the cart\n\nand {{more}}",
        facts="- `make` exited with 0\n",
        build_command="make",
    )
    words = [
        "- id: J1",
        "- requirement: REQ-1",
        "> Keep the cart\n>\n> and {{more}}",
        "- `make` exited with 0",
        "Build it with `make`.",
        "as the project's files say.",
        *(f"`{key}`" for key in ("testsPass", "documentationExists", "buildSucceeds")),
        *("`requirementValid`", "`type(scope): text`", '"complete": false', '"issues": ['),
    ]
    assert [] == [word for word in words if word not in text and word not in " ".join(text.split())]
    template = Prompts().template("verify_job").read_text()
    assert set(VERIFY_JOB_VARIABLES) == set(re.findall(r"\{\{(\w+)\}\}", template))
    assert '"buildSucceeds"' in build_verification_prompt(Prompts())


def test_a_job_cannot_add_headings() -> None:
    """Job text stays within its quotation, and codes on their line."""
    text = verification(job_id="J1\n# New", requirement_code="\n\nREQ-1", description="\n## Do\n")
    assert "- id: J1 # New\n- requirement: REQ-1\n\n> ## Do\n" in text
    assert "> (nothing)" in verification(description=" ")


def test_a_projects_own_verification(tmp_path: Path) -> None:
    """A project's template of that name is used, with the same variables."""
    (tmp_path / "verify_job.md").write_text("{{job_id}}: {{facts}}")
    (tmp_path / "verify_build.md").write_text("{{job_id}}")
    prompts = Prompts(tmp_path)
    assert "J1: - f" == job_verification_prompt(
        prompts, job_id="J1", requirement_code="R", description="d", facts="- f"
    )
    with pytest.raises(ConfigError, match="unknown variable"):
        build_verification_prompt(prompts)


NAMES: tuple[InstructionName, ...] = get_args(InstructionName)
SKIPPED = not_followed("autonoe_instructions")
NEEDED: dict[InstructionName, set[ToolName]] = {
    "initializer": {"create_deliverable"},
    "coding": {"set_deliverable_status", "list"},
    "sync": {"create_deliverable", "deprecate", "list"},
    "verify": {"set_deliverable_status", "verify", "list"},
}
INSTRUCTIONS = {row["id"]: row for row in rows("autonoe_instructions")}


def of_kind(kind: str) -> list[str]:
    """Return the cases of a kind, asserting that there is one."""
    ids = [key for key, row in INSTRUCTIONS.items() if row["kind"] == kind and key not in SKIPPED]
    assert ids
    return ids


def load(name: InstructionName, project: Path) -> Instruction:
    """Return the instruction for a session with the tools of the loop."""
    tools: dict[str, str] = {tool: agent_tool(tool) for tool in TOOLS_OF[name]}
    return load_instruction(name, project, tools=tools)


def own(project: Path, name: str, content: bytes) -> Path:
    """Return a project with its own instruction."""
    (project / ".autonoe").mkdir(exist_ok=True)
    (project / f".autonoe/{name}.md").write_bytes(content)
    return project


def built_in(name: InstructionName, folder: Path) -> str:
    """Return the built-in text, as a project without an override gets it."""
    return load(name, folder / "nothing").text


@each("case", of_kind("instruction_run"))
def test_a_run_chooses_by_the_status_file(case: str) -> None:
    """Without a status file a run initializes, with one it codes."""
    row = INSTRUCTIONS[case]
    planned = row["input"]["status_exists"]
    assert row["expected"]["name"] == choose_instruction(RUN, is_planned=planned)


def test_a_sync_chooses_by_its_planning() -> None:
    """A sync compares first, and verifies once that is done."""
    assert "sync" == choose_instruction(SYNC, is_planned=False)
    assert "verify" == choose_instruction(SYNC, is_planned=True)


def test_custom_workflows() -> None:
    """The choice follows the given workflow."""
    assert "sync" == choose_instruction(Workflow("sync", "coding"), is_planned=False)
    assert "coding" == choose_instruction(Workflow("sync", "coding"), is_planned=True)


@each("case", of_kind("model_selection"))
def test_planning_uses_the_planning_model(case: str) -> None:
    """Planning instructions use the planning model, the others the default one."""
    row = INSTRUCTIONS[case]
    option = "plan_model" if is_planning(row["input"]["instruction"]) else "model"
    assert row["expected"]["option"] == option


@pytest.mark.parametrize("case", of_kind("instruction_override"))
def test_a_projects_own_text_replaces_the_built_in_one(case: str, tmp_path: Path) -> None:
    """The override that the case names replaces the whole instruction."""
    given_, expected = INSTRUCTIONS[case]["input"], INSTRUCTIONS[case]["expected"]["content"]
    if given_["exists"]:
        assert given_["override_file"] == f".autonoe/{given_['name']}.md"
        own(tmp_path, given_["name"], given_["content"].encode())
    found = load(given_["name"], tmp_path)
    text = built_in(given_["name"], tmp_path) if expected == "<builtin>" else expected
    assert (text, given_["exists"], ()) == (found.text, found.is_override, found.warnings)


@each("name", NAMES)
def test_a_built_in_text_names_the_tools_of_its_sessions(name: InstructionName) -> None:
    """A template names each tool of its sessions as the agent sees it."""
    text = " ".join(load(name, Path("/nothing/there")).text.split())
    template = Prompts().template(name).read_text(encoding="utf-8")
    needed = NEEDED[name]
    assert needed == set(re.findall(r"\{\{(\w+)\}\}", template))
    assert needed <= set(TOOLS_OF[name])
    assert {agent_tool(tool) for tool in needed} == set(re.findall(r"mcp__[\w-]+", text))
    assert "{{" not in text
    assert ("list" in needed) == ("rather than read the whole status file" in text)


def test_a_missing_tool_is_an_error() -> None:
    """The built-in text never refers to an unavailable tool."""
    with pytest.raises(ConfigError, match=r"coding\.md line \d+: unknown variable \{\{list\}\}"):
        load_instruction("coding", Path("/nothing"), tools={"set_deliverable_status": "x"})


@each(
    "name, words",
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
def test_required_statements_of_instructions(name: InstructionName, words: list[str]) -> None:
    """Each text has the statements that its sessions need, and the common ones."""
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


@each("name", ["coding", "verify"])
def test_blocked_is_for_causes_from_outside(name: InstructionName) -> None:
    """Texts of sessions that may block a deliverable explain when, and when not (AUT-096)."""
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
def test_the_guard_allows_the_requested_commands(
    name: InstructionName, mode: Mode, tmp_path: Path
) -> None:
    """Each command that a built-in text requests is allowed at `full`."""
    project = make_project(tmp_path)
    policy = Policy(project=str(project), mode=mode)
    asked = load(name, project).text.split("## Rules")[0]
    found = set(re.findall(r"`((?:pwd|ls|git|chmod|bin/dev\.sh)\b[^`]*)`", asked))
    assert "bin/dev.sh" in found or name == "sync"
    assert {} == {line: why for line in found if (why := reason_of(line, policy))}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "blank"),
        (b"\xef\xbb\xbf \r\n\t\n", "blank"),
        (b"ab\xffcd", "byte 2: not UTF-8"),
        ("Instruction".encode("utf-16"), "byte 0: not UTF-8"),
        (b"one\0two", "not a text file: it contains a NUL character"),
    ],
)
@pytest.mark.parametrize("name", NAMES)
def test_an_unusable_text_gives_the_built_in_one_and_a_warning(
    name: InstructionName, content: bytes, why: str, tmp_path: Path
) -> None:
    """An invalid override is skipped, with a warning that has the reason."""
    found = load(name, own(tmp_path, name, content))
    assert built_in(name, tmp_path) == found.text
    assert (f".autonoe/{name}.md: {why}; the built-in instruction is used",) == found.warnings
    assert not found.is_override


def test_a_folder_or_pipe_gives_a_warning(tmp_path: Path) -> None:
    """A folder, a pipe or a dangling link is skipped with a warning and without blocking."""
    folder = tmp_path / ".autonoe"
    (folder / "coding.md").mkdir(parents=True)
    os.mkfifo(folder / "sync.md")
    (folder / "verify.md").symlink_to("nowhere")
    (folder / "initializer.md").symlink_to("initializer.md")
    found: dict[str, Any] = {name: load(name, tmp_path) for name in NAMES}
    assert all(built_in(name, tmp_path) == found[name].text for name in NAMES)
    reasons = {name: found[name].warnings[0].split(".md: ")[1].split(";")[0] for name in NAMES}
    assert "not a regular file" == reasons["coding"] == reasons["sync"]
    assert "a link without a target" == reasons["verify"]
    assert "cannot be read" in reasons["initializer"]


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    """If `.autonoe` is a file the built-in text is used; other code reports the problem."""
    (tmp_path / ".autonoe").write_text("")
    found = load("coding", tmp_path)
    assert (built_in("coding", tmp_path), ()) == (found.text, found.warnings)


def test_a_link_to_a_text_is_followed(tmp_path: Path) -> None:
    """An override may be a symlink."""
    (tmp_path / "mine.md").write_text("Mine.")
    (tmp_path / ".autonoe").mkdir()
    (tmp_path / ".autonoe/coding.md").symlink_to("../mine.md")
    assert "Mine." == load("coding", tmp_path).text


@given(st.text(st.characters(exclude_characters="\0\r", exclude_categories=["Cs"])))
def test_a_projects_text_is_used_verbatim(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    """Text that looks like a variable stays; byte order mark and line endings are normalized."""
    text = f"One {{{{list}}}} {{{{x}}}}\n{text}\n"
    project = tmp_path_factory.mktemp("project")
    for ending in ("\n", "\r\n", "\r"):
        content = b"\xef\xbb\xbf" + text.replace("\n", ending).encode()
        found = load("coding", own(project, "coding", content))
        assert (text, True, ()) == (found.text, found.is_override, found.warnings)
