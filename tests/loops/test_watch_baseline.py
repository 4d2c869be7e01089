"""The check before the first agent of a watch with slots, with real git and the scripted agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reactivex import operators as ops

import cuggino
from cuggino import events as ev
from cuggino.errors import CheckUnusable
from cuggino.events import Event
from tests.git_project import isolate_git
from tests.loops.slot_project import SlotProject

pytestmark = pytest.mark.real_agent

SECRET = 'grep -q SECRET .env || { echo "no settings"; exit 3; }'
RED = 'test -e word1.txt || { echo "no word"; exit 3; }'


@pytest.fixture(autouse=True)
def isolated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    isolate_git(monkeypatch, tmp_path / "home")


def project(folder: Path, **config: Any) -> SlotProject:
    """Return a project with an item that writes `word1.txt`, and an ignored `.env`."""
    made = SlotProject(folder, **config)
    made.git.write(".gitignore", ".cuggino\n.env\n")
    made.git.git("commit", "-qam", "Ignore the settings")
    made.git.write(".env", "SECRET=1\n")
    made.item("1", "echo 1 >word1.txt")
    return made


def refused(made: SlotProject) -> tuple[CheckUnusable, list[Event]]:
    """Return the error of a watch that begins nothing, and its events."""
    seen: list[Event] = []
    with pytest.raises(CheckUnusable) as raised:
        cuggino.run(made.runtime().watch().pipe(ops.do_action(seen.append)))
    assert [] == [event for event in seen if isinstance(event, ev.WatchProcessingItem)]
    assert 14 == raised.value.code
    assert ["1.md"] == [path.name for path in made.workspace.backlog.iterdir()]
    return raised.value, seen


def test_an_ignored_file_that_slots_lack(tmp_path: Path) -> None:
    """No session is started; the message names the file and `.worktreeinclude`."""
    made = project(tmp_path, check_command=SECRET)
    error, seen = refused(made)
    assert (
        "the check passes in the project, but fails in a slot (exit code 3): no settings. "
        "Slots lack these ignored files: .env"
    ) == error.message
    assert ".worktreeinclude" in (error.hint or "")
    checks = [event.on for event in seen if isinstance(event, ev.CheckCommandStarted)]
    assert ["commit", "commit", "copy"] == checks
    made.git.write(".worktreeinclude", ".env\n")
    made.git.git("add", "-A")
    made.git.git("commit", "-qm", "Include the settings")
    assert "WatchItemCompleted" in [event.tag for event in made.watch()]


def test_uncommitted_changes_that_slots_lack(tmp_path: Path) -> None:
    """They are named, too."""
    made = project(tmp_path, check_command="sh check.sh")
    made.git.write("check.sh", "exit 1\n")
    made.git.git("commit", "-qam", "Break the check")
    made.git.write("check.sh", "true\n")
    error, _ = refused(made)
    assert "Slots lack these uncommitted changes: check.sh" in error.message


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"check_command": RED, "baseline": "must-pass"}, "before the first agent (exit code 3)"),
        ({"setup_command": "echo offline; exit 1"}, "the setup command fails in a slot"),
    ],
)
def test_what_no_agent_could_mend(tmp_path: Path, config: dict[str, Any], words: str) -> None:
    error, _ = refused(project(tmp_path, **config))
    assert words in error.message


@pytest.mark.parametrize(
    ("config", "codes", "checks"),
    [
        pytest.param({}, [0], 1, id="green"),
        pytest.param({"check_command": RED}, [3], 3, id="red in both"),
        pytest.param({"check_command": RED, "baseline": "skip"}, [], 0, id="skipped"),
    ],
)
def test_a_baseline_is_told_and_the_watch_goes_on(
    tmp_path: Path, config: dict[str, Any], codes: list[int], checks: int
) -> None:
    """The check runs once for all items, and again only where it fails."""
    made = project(tmp_path, **config)
    made.item("2", "echo 2 >word2.txt; echo 1 >word1.txt")
    seen = made.watch()
    begun = next(n for n, event in enumerate(seen) if isinstance(event, ev.WatchProcessingItem))
    told = [event for event in seen if isinstance(event, ev.Baseline) and event.item is None]
    assert codes == [event.exit_code for event in told]
    before = [event for event in seen[:begun] if isinstance(event, ev.CheckCommandStarted)]
    assert checks == len(before)
    assert 2 == len([event for event in seen if isinstance(event, ev.WatchItemCompleted)])


def test_the_project_keeps_its_files(tmp_path: Path) -> None:
    """What the check writes there vanishes."""
    made = project(tmp_path, check_command="echo ran >made.txt; exit 1")
    stream = (
        made.runtime()
        .watch()
        .pipe(ops.take_while(lambda event: not isinstance(event, ev.Baseline), inclusive=True))
    )
    cuggino.run(stream)
    assert not (made.folder / "made.txt").exists()


def test_it_runs_once_in_a_watch(tmp_path: Path) -> None:
    """Not again before the items that come later."""
    made = project(tmp_path)
    seen: list[ev.Event] = []
    for event in cuggino.iterate(made.runtime().watch()):
        seen.append(event)
        if isinstance(event, ev.WatchBacklogWaiting):
            if len(list(made.workspace.archive.iterdir())) == 2:
                break
            made.item("2", "echo 2 >word2.txt")
    assert 1 == len([event for event in seen if isinstance(event, ev.Baseline) and not event.item])
