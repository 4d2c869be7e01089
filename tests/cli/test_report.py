"""`cuggino report` on a real folder."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import pytest

from cuggino.events import CommitPerformed, RunEnded, RunStarted, WatchProcessingItem
from cuggino.storage import Workspace
from cuggino.storage.journal import Journal
from cuggino_cli.main import main
from tests.cli.cli import Cli
from tests.git_project import GitProject, isolate_git
from tests.limits import LIMIT

JOURNALS = Path(__file__).parent.parent / "data" / "journals"
FIRST = "019aa000-0000-7000-8000-000000000001"
LAST = "019aa000-0000-7000-8000-000000000004"


@pytest.fixture
def runs(project: Path) -> Path:
    """Return a project with the journals of a finished run and a later resumed one."""
    folder = Workspace(project).journal
    folder.mkdir(parents=True)
    for name, run_id in (("finished", FIRST), ("resumed", LAST)):
        text = (JOURNALS / f"{name}.jsonl").read_text(encoding="utf-8")
        (folder / f"{run_id}.jsonl").write_text(text, encoding="utf-8")
    return project


def page(path: Path) -> str:
    """Return the page."""
    return path.read_text(encoding="utf-8")


def test_the_latest_run(runs: Path, cli: Cli) -> None:
    """Without an ID the latest run is reported, in a file named after its day and its id."""
    assert 0 == main(["report"])
    (file,) = (runs / ".cuggino" / "reports").glob("*.html")
    assert re.fullmatch(rf"\d{{4}}-\d\d-\d\d-run-{LAST}\.html", file.name)
    assert f"Wrote .cuggino/reports/{file.name}\n" == cli.printed().out
    text = page(file)
    assert text.startswith("<!doctype html>")
    assert "The same findings came back three times." in text


def at_work(
    folder: Path,
    number: int,
    hour: int,
    kind: Literal["run", "watch"],
    item: str = "",
    *,
    items: int = 0,
) -> None:
    """Write the journal of a run that began at this hour, of a watch with that many items."""
    run_id = f"{number:08d}-0000-7000-8000-000000000000"
    started = RunStarted(
        run_id=run_id, kind=kind, command="cuggino", item=f"{item} 0a" if item else None
    )
    at = datetime(2026, 3, 1, tzinfo=UTC) + timedelta(hours=hour)
    journal = Journal.create(Workspace(folder).journal, started, at=at, sync=False)
    for one in range(items):
        journal.append(WatchProcessingItem(filename=f"00{one}-page.md"), at=at)
    journal.close()


@pytest.mark.parametrize(
    ("items", "morning", "expected"),
    [(2, 32, "night-00000001"), (2, 60, "run-00000009"), (1, 32, "run-00000009")],
    ids=["the night", "another day", "one item"],
)
def test_the_night(project: Path, items: int, morning: int, expected: str) -> None:
    """A run of the morning does not hide the watch of the night, if that had several items."""
    at_work(project, 1, 22, "watch", items=items)
    for number in range(items):
        at_work(project, 2 + number, 23, "run", f"00{number}-page.md")
    at_work(project, 9, morning, "run")
    assert 0 == main(["report"])
    (file,) = (project / ".cuggino" / "reports").glob("*.html")
    assert file.stem.endswith(expected)


def test_the_night_of_a_watch_that_was_started_again(project: Path) -> None:
    """The later watch is reported, also if it has only resumed runs of the earlier one."""
    at_work(project, 1, 22, "watch", items=2)
    for number in range(2):
        at_work(project, 2 + number, 23, "run", f"00{number}-page.md")
    at_work(project, 8, 24, "watch", items=2)
    at_work(project, 9, 32, "run")
    assert 0 == main(["report"])
    (file,) = (project / ".cuggino" / "reports").glob("*.html")
    assert file.stem.endswith("night-00000008")


@pytest.mark.parametrize("wanted", [FIRST, f"{FIRST}.jsonl", f"x/{FIRST}.jsonl"])
def test_a_run_by_its_id(runs: Path, wanted: str) -> None:
    """A run is addressed by its ID or its journal file."""
    assert 0 == main(["report", wanted, "-o", "out.html"])
    assert "Matches the specification." in page(runs / "out.html")


def test_a_unique_prefix(runs: Path) -> None:
    """A run is addressed by a unique prefix of its ID."""
    other = runs / ".cuggino" / "journal" / "01900000-0000-7000-8000-000000000000.jsonl"
    (other.parent / f"{FIRST}.jsonl").rename(other)
    assert 0 == main(["report", "0190", "-o", "out.html"])
    assert "Matches the specification." in page(runs / "out.html")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["019bb"], "there is no run '019bb'"),
        (["019aa"], f"2 runs begin with '019aa': {LAST}, {FIRST}"),
        (["-o", ""], "The name of the output file is empty."),
        (["-o", "no/such/folder.html"], "cannot be written: No such file or directory"),
        (["-o", ".specs"], "cannot be written: Is a directory"),
        (["-o", "notes.md"], "notes.md exists and is not a report"),
    ],
)
def test_usage_errors(runs: Path, cli: Cli, args: list[str], words: str) -> None:
    """A usage error is one sentence, exits with 2 and changes nothing."""
    (runs / "notes.md").write_text("mine", encoding="utf-8")
    assert words in cli.err("report", *args)
    assert "mine" == (runs / "notes.md").read_text(encoding="utf-8")
    assert [] == list(runs.glob("*.html"))


def test_a_broken_journal(runs: Path, cli: Cli) -> None:
    """An unreadable journal is reported with the line."""
    path = runs / ".cuggino" / "journal" / f"{LAST}.jsonl"
    path.write_text("{}\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    assert 0 != main(["report"])
    assert "line 1 is broken" in cli.printed().err


def test_an_unwritable_folder(runs: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read-only folder is a one-sentence error."""

    def refuse(_self: Path, _target: Path) -> Path:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    # Root can write to every real folder.
    monkeypatch.setattr(Path, "replace", refuse)
    assert 2 == main(["report"])
    assert [] == [path for path in runs.iterdir() if ".html" in path.name]
    assert "cannot be written: Permission denied" in cli.printed().err


def test_a_report_is_replaced(runs: Path) -> None:
    """The new report replaces an earlier one or an empty file."""
    (runs / "out.html").touch()
    for run_id, words in ((FIRST, "Matches the specification."), (LAST, "Stalled")):
        assert 0 == main(["report", run_id, "-o", "out.html"])
        assert words in page(runs / "out.html")
    assert ["out.html"] == [path.name for path in runs.glob("*out.html*")]


def test_through_a_link(runs: Path) -> None:
    """A symlink is followed, not replaced."""
    (runs / "out.html").symlink_to("there.html")
    assert 0 == main(["report", "-o", "out.html"])
    assert (runs / "out.html").is_symlink()
    assert "Stalled" in page(runs / "there.html")


def test_a_device(runs: Path, cli: Cli) -> None:
    """A device is written to directly."""
    assert runs.exists()
    assert 0 == main(["report", "-o", os.devnull])
    assert not Path(os.devnull).is_file()
    assert f"Wrote {os.devnull}\n" == cli.printed().out


@pytest.mark.real_agent
def test_standard_output(runs: Path) -> None:
    """`-` writes only the page, in UTF-8 under any terminal encoding."""
    run_id = "019aa000-0000-7000-8000-000000000007"
    text = (JOURNALS / "unicode.jsonl").read_text(encoding="utf-8")
    (runs / ".cuggino" / "journal" / f"{run_id}.jsonl").write_text(text, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-m", "cuggino_cli", "report", "-o", "-"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=True,
        timeout=LIMIT,
    )
    assert ran.stdout.startswith(b"<!doctype html>")
    assert ran.stdout.endswith(b"</html>\n")
    assert "Añade inicio de sesión 🔑".encode() in ran.stdout
    assert [] == list(runs.glob("*.html"))


def journal_of(folder: Path, *events: Any, at: datetime) -> str:
    """Write a journal with these events, all at one time, and return its run's ID."""
    run_id = "019aa000-0000-7000-8000-00000000000a"
    started = RunStarted(run_id=run_id, kind="run", command="cuggino run")
    journal = Journal.create(Workspace(folder).journal, started, at=at, sync=False)
    for event in events:
        journal.append(event, at=at)
    journal.close()
    return run_id


def test_a_running_run(project: Path) -> None:
    """A run started by the workspace's owner is running; any other was killed."""
    with Workspace(project).lock():
        run_id = journal_of(project, at=datetime.now(UTC))
        assert 0 == main(["report", "-o", "out.html"])
        assert '<span class="badge neutral">running</span>' in page(project / "out.html")
    assert 0 == main(["report", "-o", "out.html"])
    assert '<span class="badge bad">killed</span>' in page(project / "out.html")
    (project / ".cuggino" / "journal" / f"{run_id}.jsonl").unlink()
    with Workspace(project).lock():
        journal_of(project, at=datetime.now(UTC) - timedelta(hours=1))
        assert 0 == main(["report", "-o", "out.html"])
    assert '<span class="badge bad">killed</span>' in page(project / "out.html")


def test_the_owner_was_killed(project: Path) -> None:
    """A run whose owner is dead is not reported as running."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    assert 0 == gone.wait(timeout=LIMIT)
    journal_of(project, at=datetime.now(UTC))
    owner = {"pid": gone.pid, "since": "2026-11-20T21:00:00+00:00", "command": "cuggino run"}
    (project / ".cuggino" / "lock.json").write_text(json.dumps(owner), encoding="utf-8")
    assert 0 == main(["report", "-o", "out.html"])
    assert '<span class="badge bad">killed</span>' in page(project / "out.html")


def test_commits(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each commit has its changed lines and files; a missing commit is marked."""
    isolate_git(monkeypatch, project / "home")
    repository = GitProject(project)
    repository.write("ключ {a => b}.py", "one\ntwo\n")
    (project / "data.bin").write_bytes(b"\0\1")
    repository.git("add", "-A", ".specs", "data.bin", "ключ {a => b}.py")
    repository.git("commit", "--quiet", "-m", "first")
    first = repository.git("rev-parse", "--short", "HEAD").strip()
    repository.write("ключ {a => b}.py", "one\nthree\nfour\n")
    repository.git("commit", "--quiet", "-a", "-m", "second")
    second = repository.git("rev-parse", "HEAD").strip()
    blob = repository.git("rev-parse", "HEAD:data.bin").strip()
    names = (first, second, "0123456", blob, f"--output={project / 'made'}", "HEAD")
    made = [CommitPerformed(iteration=1, commit_hash=name, message="work") for name in names]
    journal_of(project, *made, RunEnded(state="approved"), at=datetime.now(UTC))
    assert 0 == main(["report", "-o", "out.html"])
    text = page(project / "out.html")
    assert '<span class="good">+4</span> <span class="bad">−1</span> lines' in text
    assert '<span class="d">-two\n</span><span class="a">+three\n+four\n</span>' in text
    assert "ключ {a =&gt; b}.py" in text
    assert "binary" in text
    assert 4 == text.count("The repository does not have it any more.")
    assert not (project / "made").exists()


def test_commits_without_a_repository(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a repository or git the changes of a commit are left out."""
    isolate_git(monkeypatch, runs / "home")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(runs.parent))
    assert 0 == main(["report", "-o", "out.html"])
    monkeypatch.setenv("PATH", str(runs / "home"))
    assert 0 == main(["report", "-o", "other.html"])
    for name in ("out.html", "other.html"):
        assert "does not have it any more" not in page(runs / name)
        assert "Task 1" in page(runs / name)


def test_local_time(runs: Path) -> None:
    """All times have the UTC offset of this machine at the start of the run."""
    assert 0 == main(["report", "-o", "out.html"])
    local = datetime(2026, 11, 20, 21, 0, tzinfo=UTC).astimezone()
    assert f", {local:%H:%M}" in page(runs / "out.html")


def test_only_the_user_can_read_it(runs: Path) -> None:
    """A report is readable by its user alone, also one that replaces an older report."""
    for _ in range(2):
        assert 0 == main(["report", "-o", "out.html"])
        assert 0o600 == (runs / "out.html").stat().st_mode & 0o777
        (runs / "out.html").chmod(0o644)
