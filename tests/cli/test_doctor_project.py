"""`cuggino doctor` on git, forges, slots and session files."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import git
import pytest

from cuggino import events as ev
from cuggino.doctor.result import CheckResult
from cuggino.events import RunEnded
from cuggino.storage import Workspace
from cuggino_cli.main import main
from tests.cli.cli import Cli
from tests.cli.looking import look
from tests.cli.recorded_runs import APPROVED, ONE, SAID, THREE, TWO, Said, record
from tests.cli.rounds import APPROVES, PLANS, implements

pytestmark = pytest.mark.usefixtures("no_identity")


@pytest.fixture
def no_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty the PATH."""
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))


def make_repository(folder: Path, *, commit: bool = True) -> git.Repo:
    """Create a repository with one commit; return it closed, with no git process left."""
    with git.Repo.init(folder, initial_branch="main") as repo:
        if commit:
            actor = git.Actor("A", "a@example.org")
            repo.index.add(["scenario.toml"])
            repo.index.commit("first", author=actor, committer=actor)
    return repo


def statuses(findings: list[CheckResult]) -> list[tuple[str, str]]:
    """Return each finding's status and the start of its text."""
    return [(finding.status, finding.what) for finding in findings]


@pytest.mark.usefixtures("no_repository")
def test_repository_missing(ready: Path) -> None:
    """A missing repository is a problem when commits are enabled, else a note."""
    [wanted] = look("git", ready, commit=True)
    assert ("problem", "git: no repository here") == (wanted.status, wanted.what)
    [unwanted] = look("git", ready, commit=False)
    assert ("note", "git: no repository here (commit is off)") == (unwanted.status, unwanted.what)
    assert "`cuggino undo` restores nothing" in str(unwanted.hint)


@pytest.mark.usefixtures("no_git")
def test_git_missing(ready: Path) -> None:
    """A missing git is a problem when commits are enabled, else a note."""
    [wanted] = look("git", ready, commit=True)
    assert ("problem", "git: not installed") == (wanted.status, wanted.what)
    [unwanted] = look("git", ready, commit=False)
    assert ("note", "git: not installed (commit is off)") == (unwanted.status, unwanted.what)


def test_repository_clean(ready: Path) -> None:
    """A repository is reported with its branch."""
    make_repository(ready)
    expected = [("ok", f"git: repository {ready}, branch main")]
    assert expected == statuses(look("git", ready, commit=False))


def test_repository_without_commit(ready: Path) -> None:
    """A missing first commit is a note."""
    make_repository(ready, commit=False)
    found = look("git", ready, commit=False)
    assert ("note", "git: no commit yet") == statuses(found)[1]


def test_repository_detached(ready: Path) -> None:
    """A detached HEAD is reported."""
    repo = make_repository(ready)
    repo.git.checkout("--detach")
    expected = [("ok", f"git: repository {ready}, no branch (detached HEAD)")]
    assert expected == statuses(look("git", ready, commit=False))


def test_commits_on_no_branch(ready: Path) -> None:
    """With commits enabled a detached HEAD is noted, with advice; a branch is not."""
    repo = make_repository(ready)
    assert "note" not in [status for status, _ in statuses(look("git", ready, commit=True))]
    repo.git.checkout("--detach")
    note = look("git", ready, commit=True)[1]
    assert ("note", "git: a run would commit on no branch") == (note.status, note.what)
    assert "git switch -c" in (note.hint or "")


@pytest.mark.parametrize("commit", [False, True])
def test_uncommitted_changes(commit: bool, ready: Path) -> None:
    """Uncommitted changes are noted, with what a committing run does with them."""
    make_repository(ready)
    (ready / "scenario.toml").write_text("changed", encoding="utf-8")
    found = look("git", ready, commit=commit)[1]
    assert ("note", "git: uncommitted changes") == (found.status, found.what)
    assert commit == (found.hint is not None)


def test_git_refuses(ready: Path) -> None:
    """The error from git is reported for a repository that it rejects."""
    make_repository(ready)
    (ready / ".git" / "index").write_bytes(b"no index")
    [found] = look("git", ready, commit=True)
    assert "problem" == found.status
    assert "index" in found.what
    assert "see what `git status` says here" == found.hint


def test_committer_by_configuration(ready: Path) -> None:
    """A configured committer is reported."""
    with make_repository(ready).config_writer() as writer:
        writer.set_value("user", "name", "Ada L").set_value("user", "email", "ada@example.org")
    expected = [CheckResult("ok", "git: commits as Ada L <ada@example.org>")]
    assert expected == look("git", ready, commit=True)[1:]


def test_committer_by_environment(ready: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A committer from the environment is accepted."""
    make_repository(ready)
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Ada")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "ada@example.org")
    expected = CheckResult("ok", "git: commits as Ada <ada@example.org>")
    assert expected in look("git", ready, commit=True)


def test_committer_guessed(ready: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A committer that git can only guess is a note."""
    make_repository(ready)
    (tmp_path / "home" / ".gitconfig").write_text("[user]\n\tname = Ada\n", encoding="utf-8")
    monkeypatch.setenv("EMAIL", "ada@example.org")
    found = look("git", ready, commit=True)[1]
    expected = ("note", "git: commits as Ada <ada@example.org>, which git guessed")
    assert expected == (found.status, found.what)


@pytest.mark.parametrize("commit", [False, True])
def test_committer_missing(commit: bool, ready: Path) -> None:
    """A missing committer is a problem when commits are enabled, and otherwise ignored."""
    make_repository(ready)
    rest = statuses(look("git", ready, commit=commit)[1:])
    expected = [("problem", "git: no user.name and user.email to commit with")]
    assert (expected if commit else []) == rest


SOURCE = {"type": "github", "label": "agent"}


@pytest.fixture
def on_github(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project on github.com, with no program but git on the path."""
    programs = tmp_path / "bin"
    programs.mkdir()
    git = shutil.which("git")
    assert git is not None
    (programs / "git").symlink_to(git)
    monkeypatch.setenv("PATH", str(programs))
    folder = tmp_path / "project"
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    remote = ["git", "remote", "add", "origin", "git@github.com:o/r.git"]
    subprocess.run(remote, cwd=folder, check=True)
    return folder


def install(name: str, *, version: str, token: str = "") -> None:
    """Install a program that prints its version, and its token for the public host only."""
    file = Path(os.environ["PATH"]) / name
    file.write_text(
        "#!/bin/sh\n"
        'case "$*" in\n'
        f'  --version) echo "{name} version {version} (2025-01-13)";;\n'
        f'  "auth token --hostname github.com") echo "{token}";;\n'
        f'  "config get token --host gitlab.com") echo "{token}";;\n'
        "  *) exit 1;;\n"
        "esac\n"
    )
    file.chmod(0o755)


def reported(folder: Path, **settings: Any) -> list[CheckResult]:
    given = {"commit": True, "checkCommand": "make", **settings}
    return look("forge", folder, **given)


def test_nothing_is_said_without_a_forge(on_github: Path) -> None:
    command = {"type": "command", "command": "true"}
    assert reported(on_github) == []
    assert reported(on_github, backlogSources=[command]) == []


def test_a_missing_program_comes_with_the_place_to_get_it(on_github: Path) -> None:
    (result,) = reported(on_github, backlogSources=[SOURCE])
    assert result.status == "problem"
    assert result.what == "forge: github.com/o/r: gh is not installed"
    assert "https://cli.github.com" in (result.hint or "")


def test_a_missing_login_comes_with_the_command(on_github: Path) -> None:
    install("gh", version="2.102.0")
    assert reported(on_github, backlogSources=[SOURCE]) == [
        CheckResult(
            "problem",
            "forge: gh has no login for github.com",
            "run `gh auth login --hostname github.com`",
        )
    ]


def test_an_old_program_is_named(on_github: Path) -> None:
    install("gh", version="2.4.0", token="x")
    (result,) = reported(on_github, backlogSources=[SOURCE])
    assert (result.status, result.hint) == ("note", "update gh")
    assert result.what == "forge: gh 2.4.0 is older than 2.23, the oldest tested"


def test_each_repository_is_checked_once(on_github: Path) -> None:
    install("gh", version="2.23.0", token="secret")
    install("glab", version="1.53.0")
    other = {"type": "gitlab", "label": "agent", "repo": "g/p"}
    results = reported(
        on_github,
        backlogSources=[SOURCE, {**SOURCE, "name": "more", "label": "later"}, other],
        slots=2,
        landOn="pr",
    )
    assert [(result.status, result.what) for result in results] == [
        ("ok", "forge: github.com/o/r by gh 2.23.0"),
        ("note", "forge: glab has no login for gitlab.com"),
    ]
    assert "secret" not in repr(results)


def test_a_repository_that_nothing_names_is_a_problem(on_github: Path) -> None:
    subprocess.run(["git", "remote", "remove", "origin"], cwd=on_github, check=True)
    (result,) = reported(on_github, backlogSources=[SOURCE])
    assert result.status == "problem"
    assert result.what == (
        "forge: no repository on github.com is known: the git remote does not exist"
    )


Ran = Callable[..., None]


def check(begin: float, seconds: float, item: str | None = None) -> list[Said]:
    """Return the events of a check command."""
    end = begin + seconds
    return [
        (begin, "check#1", ev.StageStarted(name="check")),
        (begin, "check#1", ev.CheckCommandStarted(iteration=1, command="make", item=item)),
        (end, "check#1", ev.CheckCommandOutput(iteration=1, exit_code=0, item=item)),
        (end, "check#1", ev.StageFinished(outcome=None)),
    ]


@pytest.fixture
def ran(tmp_path: Path) -> Ran:
    """Record runs of items that took `minutes`, with a check of `check_seconds`."""

    def run(*minutes: float, check_seconds: float = 180, state: str = "approved") -> None:
        for number, time in enumerate(minutes):
            end = time * 60
            terminal: ev.LoopTerminalEvent = ev.LoopApproved(iteration=1)
            said: list[Said] = [
                *check(10, check_seconds),
                (end, None, terminal),
                (end, None, ev.RunEnded(state=state)),  # type: ignore[arg-type]
            ]
            record(tmp_path, str(uuid.uuid4()), *said, item=f"{number}.md 0123")

    return run


def slots_reported(folder: Path, **settings: Any) -> list[CheckResult]:
    return look("slots", folder, **{"commit": True, "checkCommand": "make", **settings})


def test_too_many_slots(tmp_path: Path, ran: Ran) -> None:
    """More slots than items take checks would only wait; the median counts."""
    ran(30, 31, 29, 500, 1)
    assert [
        CheckResult(
            "note",
            "slots: 16, of which 6 would wait for the check: an item takes 30 min, "
            "the check of each landing 3 min",
            'set "slots" to 10 in .cuggino.json, or make the check faster',
        )
    ] == slots_reported(tmp_path, slots=16)


@pytest.mark.parametrize("count", [1, 4, 10])
def test_as_many_slots_as_have_a_use(tmp_path: Path, ran: Ran, count: int) -> None:
    """It is all right to use fewer; how many there could be is shown."""
    ran(30, 30, 30)
    (result,) = slots_reported(tmp_path, slots=count)
    assert result == CheckResult(
        "ok",
        f"slots: {count}; up to 10 would not wait for the check "
        "(an item takes 30 min, the check of each landing 3 min)",
    )


def test_a_check_as_long_as_an_item(tmp_path: Path, ran: Ran) -> None:
    """A second slot only waits."""
    ran(3, 3, 3, check_seconds=120)
    assert [] == slots_reported(tmp_path)
    (result,) = slots_reported(tmp_path, slots=2)
    assert "slots: 2, of which 1 would wait" in result.what


def test_a_check_of_no_time(tmp_path: Path, ran: Ran) -> None:
    """There are never more slots than may be set."""
    ran(240, 240, 240, check_seconds=0)
    (result,) = slots_reported(tmp_path, slots=64)
    assert "slots: 64; up to 64 would not wait for the check (an item takes 4.0 h, " in result.what
    assert "the check of each landing less than 1 s" in result.what


def test_too_little_is_known(tmp_path: Path, ran: Ran) -> None:
    """Two items, unfinished ones, and runs without an item say nothing."""
    assert [] == slots_reported(tmp_path)
    assert [CheckResult("ok", "slots: 4")] == slots_reported(tmp_path, slots=4)
    ran(30, 30)
    ran(30, 30, state="interrupted")
    record(tmp_path, str(uuid.uuid4()), *check(1, 5), (9, None, ev.RunEnded(state="approved")))
    assert [] == slots_reported(tmp_path)


def test_checks_at_the_same_time(tmp_path: Path, ran: Ran) -> None:
    """In a watch with slots, each check belongs to its item."""
    said = [*check(0, 300, "a"), *check(100, 300, "b"), *check(150, 300, "c")]
    said.sort(key=lambda entry: entry[0])
    record(tmp_path, str(uuid.uuid4()), *said, kind="watch")
    ran(50, 50, 50, check_seconds=300)
    (result,) = slots_reported(tmp_path)
    assert "up to 10 would not wait" in result.what


@pytest.mark.parametrize("settings", [{"commit": False}, {"checkCommand": None}])
def test_a_project_without_slots(tmp_path: Path, ran: Ran, settings: dict[str, object]) -> None:
    """Without commits or a check there are no slots, and no advice."""
    ran(30, 30, 30)
    assert [] == slots_reported(tmp_path, **settings)


def test_journals_that_cannot_be_read(tmp_path: Path, ran: Ran) -> None:
    """They are passed over."""
    ran(30, 30, 30)
    folder = tmp_path / ".cuggino/journal"
    (folder / f"{uuid.uuid4()}.jsonl").write_text("no journal\n")
    assert "up to 10" in slots_reported(tmp_path)[0].what


NONE = CheckResult("ok", "session files: none left over")


def leave(project: Path, *names: str) -> Path:
    """Create session files with these names and return their folder."""
    wip = Workspace(project).wip
    wip.mkdir(parents=True, exist_ok=True)
    for name in names:
        (wip / name).write_text("", encoding="utf-8")
    return wip


def test_no_files(project: Path) -> None:
    """Without a wip folder, or with an empty one, there are no leftovers."""
    assert [NONE] == look("session files", project)
    leave(project)
    assert [NONE] == look("session files", project)


def test_left_overs(project: Path) -> None:
    """Files without a resumable run are counted by file and run, and may be deleted."""
    record(project, ONE, *SAID, *APPROVED)
    wip = leave(project, f"{ONE}.md", f"{ONE}.plan.md", f"{TWO}.md", "notes.md")
    what = f"session files: 4 files of 3 ended runs left in {wip}"
    assert [CheckResult("note", what, "they are safe to delete")] == look("session files", project)


def test_files_in_use(project: Path) -> None:
    """Files count as used while the process recorded for them is alive."""
    leave(project, "a.md")
    owner = Workspace(project).folder / "lock.json"
    owner.write_text("no number", encoding="utf-8")
    assert "note" == look("session files", project)[0].status
    owner.write_text(f'{{"pid": {os.getpid()}}}', encoding="utf-8")
    in_use = CheckResult("ok", f"session files: in use by process {os.getpid()}")
    assert [in_use] == look("session files", project)


@pytest.mark.parametrize("state", [None, "failed", "quota", "budget", "interrupted"])
def test_files_of_a_run_that_can_be_resumed(project: Path, state: Any) -> None:
    """Files of a resumable run are reported as needed, with how to resume it."""
    record(project, ONE, *SAID, *([] if state is None else [(98, None, RunEnded(state=state))]))
    leave(project, f"{ONE}.md", f"{ONE}.check.txt")
    expected = CheckResult(
        "note",
        "session files: of run 0193b2c1, which can be resumed",
        "resume it: `cuggino run --resume 0193b2c1`",
    )
    assert [expected] == look("session files", project)


def test_files_of_an_item_of_the_backlog(project: Path) -> None:
    """A backlog item's run is resumed with `cuggino watch`."""
    record(project, ONE, *SAID, item="001-a.md 7f3a")
    leave(project, f"{ONE}.md")
    [found] = look("session files", project)
    assert found.what.endswith("of run 0193b2c1, which is unfinished")
    assert "`cuggino watch` resumes it when it takes the item again" == found.hint


def test_files_of_several_runs(project: Path) -> None:
    """Leftovers are reported beside files that are needed."""
    record(project, ONE, *SAID)
    record(project, TWO, *SAID, *APPROVED)
    record(project, THREE, *SAID)
    wip = leave(project, f"{ONE}.md", f"{TWO}.md", f"{THREE}.md", "b.md")
    one, three, rest = look("session files", project)
    hints = [f"resume it: `cuggino run --resume {short}`" for short in ("0193b2c1", "0193b2c3")]
    assert hints == [one.hint, three.hint]
    what = f"session files: 2 files of 2 ended runs left in {wip}"
    assert CheckResult("note", what, f"safe to delete: {TWO}.md, b.md") == rest


def test_files_of_a_run_whose_journal_is_broken(project: Path) -> None:
    """Files of an unreadable journal are not called safe to delete."""
    record(project, ONE).write_text("x\ny\n")
    leave(project, f"{ONE}.md")
    [found] = look("session files", project)
    assert ("note", True) == (found.status, "line 1 is broken" in found.what)
    assert "delete" not in f"{found.hint}"
    folder = Workspace(project).journal
    shutil.rmtree(folder)
    folder.touch()  # in place of the folder
    [found] = look("session files", project)
    assert "journal" in found.what
    assert "delete" not in f"{found.hint}"


def test_the_advice_works(ready: Path, cli: Cli) -> None:
    """The suggested command resumes the failed run."""
    assert 1 == main(["run", "--focus", "x", "--max-retries", "0"])
    cli.printed()
    _, _, advice = cli("doctor").partition("resume it: `cuggino ")
    command = advice[: advice.index("`")].split()
    assert ["run", "--resume"] == command[:2]
    (ready / "scenario.toml").write_text(PLANS + implements() + APPROVES)
    assert 0 == main(command)
    assert [NONE] == look("session files", ready)
