"""Questions that `cuggino loop` asks before it starts, and their answers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cuggino.git.branch import current_branch
from cuggino_cli.main import main
from tests.cli.cli import Cli
from tests.cli.keyboard import CTRL_C, CTRL_D, ENTER, Setup
from tests.cli.loops import BANNER, DrawnLoop, project_of

QUESTION = "Do you need to add specifications, or shall we commence planning and building?"
OPTIONS = [
    "  1. Add specifications",
    "  2. Plan and build (default)",
    "  3. Go straight to building",
]
REFUSAL = "cuggino: Cannot run loop on main/master branch. Create a feature branch first."


@pytest.fixture
def repository(looping: Path) -> Path:
    """Make the project a real repository on main."""
    (looping / ".git" / "HEAD").unlink()
    (looping / ".git").rmdir()
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main"], cwd=looping, check=True)
    return looping


@pytest.mark.parametrize(
    ("keys", "start", "complaints"),
    [
        ("", "plan", 0),
        ("2", "plan", 0),
        (" 3 ", "build", 0),
        (f"zzz{ENTER}3", "build", 1),
        (f"0{ENTER}12{ENTER}2", "plan", 2),
        (f"4{ENTER}x{ENTER}yes", "plan", 3),
    ],
)
def test_the_menu(
    keys: str,
    start: str,
    complaints: int,
    drawn_loop: DrawnLoop,
    typed: Setup,
    cli: Cli,
) -> None:
    """Enter means 2; an invalid answer is asked again, and after three it is 2 (LOP-003)."""
    assert 0 == typed(keys + ENTER, "loop")
    lines = cli.printed().out.splitlines()
    assert [BANNER, QUESTION, *OPTIONS] == lines[:5]
    assert complaints == lines.count("Please answer 1, 2 or 3.")
    assert (complaints == 3) == ("Continuing with 2." in lines)
    assert [start] == [options.start for options in drawn_loop.options]


def test_the_menu_prompt() -> None:
    """The prompt equals the original's."""
    from cuggino_cli.commands.loop import SELECT

    assert "Select (1-3, default=2): " == SELECT


def test_specifications_first(drawn_loop: DrawnLoop, typed: Setup, cli: Cli) -> None:
    """The answer to add specifications first shows where, and nothing is started."""
    assert 0 == typed(f"1{ENTER}", "loop")
    expected = "Add specifications to docs/requirements/, then re-run loop."
    assert (expected, []) == (cli.printed().out.splitlines()[-1], drawn_loop.options)


def test_nothing_is_asked_with_auto(drawn_loop: DrawnLoop, typed: Setup, cli: Cli) -> None:
    """At a terminal `--auto` plans and builds without a question."""
    assert 0 == typed("", "loop", "-a")
    out, err = cli.printed()
    assert ("plan", "", False) == (drawn_loop.options[0].start, err, QUESTION in out)


@pytest.mark.parametrize("key", [CTRL_C, CTRL_D])
@pytest.mark.parametrize(("more", "code"), [([], 130), (["--compat-exit-codes"], 0)])
def test_cancelled(
    key: str,
    more: list[str],
    code: int,
    drawn_loop: DrawnLoop,
    typed: Setup,
    cli: Cli,
) -> None:
    """Ctrl-C or Ctrl-D at the question cancels, and nothing is started."""
    assert code == typed(key, "loop", *more)
    assert ("Loop cancelled by user.\n", []) == (cli.printed().err, drawn_loop.options)


@pytest.mark.parametrize("columns", [40, 60])
def test_a_narrow_terminal(
    columns: int,
    drawn_loop: DrawnLoop,
    typed: Setup,
    monkeypatch: pytest.MonkeyPatch,
    cli: Cli,
) -> None:
    """A narrow terminal wraps the texts between words."""
    monkeypatch.setenv("COLUMNS", str(columns))
    assert 0 == typed(f"1{ENTER}", "loop")
    out = cli.printed().out
    assert QUESTION in out.replace("\n", " ")
    assert all(len(line) < columns for line in out.splitlines())


def test_a_missing_prompt(looping: Path, drawn_loop: DrawnLoop, typed: Setup, cli: Cli) -> None:
    """After a question, nothing starts without a required prompt (LOP-051)."""
    (looping / "PLAN.PROMPT.md").unlink()
    assert 2 == typed(f"2{ENTER}", "loop")
    assert [
        "cuggino: Plan prompt not found: Prompt file not found: PLAN.PROMPT.md",
        "  Expected file: PLAN.PROMPT.md; `cuggino loop init` writes one",
    ] == cli.printed().err.splitlines()
    assert 0 == typed(f"3{ENTER}", "loop")
    (looping / "BUILD.PROMPT.md").unlink()
    assert 1 == typed(f"3{ENTER}", "loop", "--compat-exit-codes")
    assert 1 == len(drawn_loop.options)


def test_a_branch_is_created(
    repository: Path, drawn_loop: DrawnLoop, typed: Setup, cli: Cli
) -> None:
    """On main a new branch name is asked, again if invalid, and the loop runs."""
    assert 0 == typed(f"{ENTER}no branch{ENTER}feat/bread{ENTER}", "loop")
    out, err = cli.printed()
    assert [REFUSAL, "  git switch -c NAME, or --allow-main"] == err.splitlines()
    assert "'no branch' is not a valid branch name" in out
    assert "Switched to the new branch feat/bread." in out.splitlines()
    assert ("feat/bread", 1) == (current_branch(repository), len(drawn_loop.options))


@pytest.mark.parametrize(
    ("keys", "code"),
    [(ENTER * 2, 2), (f"{ENTER}--force{ENTER}-d{ENTER}a b{ENTER}", 2), (f"{ENTER}{CTRL_C}", 130)],
)
def test_no_branch_is_created(
    keys: str, code: int, repository: Path, drawn_loop: DrawnLoop, typed: Setup
) -> None:
    """Without a valid name nothing is started and the branch stays."""
    assert code == typed(keys, "loop")
    assert ("main", []) == (current_branch(repository), drawn_loop.options)


def test_auto_asks_for_no_branch(looping: Path, drawn_loop: DrawnLoop, typed: Setup) -> None:
    """With `--auto` a protected branch is refused without a question."""
    project_of(looping, branch="master")
    assert (2, []) == (typed("", "loop", "--auto"), drawn_loop.options)


def test_init_reports_files(looping: Path, cli: Cli) -> None:
    """`init` reports each file as created or kept, and never overwrites one (LOP-085)."""
    (looping / "BUILD.PROMPT.md").unlink()
    before = (looping / "PLAN.PROMPT.md").read_text()
    assert 0 == main(["loop", "init"])
    kept = "exists, not changed"
    assert [
        f"PLAN.PROMPT.md: {kept}",
        "BUILD.PROMPT.md: created",
        "docs/requirements/jobs-to-be-done.json: created",
    ] == cli.printed().out.splitlines()
    assert before == (looping / "PLAN.PROMPT.md").read_text()
    (looping / "c.json").write_text('{"planPromptPath": "prompts/p.md"}')
    assert "prompts/p.md: created" == cli("loop", "--config", "c.json", "init").splitlines()[0]
    assert (looping / "prompts" / "p.md").read_text().strip()
