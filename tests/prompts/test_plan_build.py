"""Prompts of the sessions of the plan/build loop."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from cuggino.errors import ConfigError, StorageError
from cuggino.prompts import Prompts
from cuggino.prompts.overriding import BUILD_PROMPT, PLAN_PROMPT
from cuggino.prompts.plan_build import (
    VERIFY_JOB_VARIABLES,
    PromptNotFound,
    build_verification_prompt,
    init_plan_build,
    job_verification_prompt,
    read_prompt,
)
from tests.vectors import each, rows

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
