"""Changes of the backlog during a watch, in virtual time with real folders."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.loops.watching import Watching

NAME = "001.md"


def edit(backlog: Path) -> None:
    (backlog / NAME).write_text("edited")


def replace(backlog: Path) -> None:
    (backlog / ".new").write_text("replaced")
    (backlog / ".new").rename(backlog / NAME)


def rename(backlog: Path) -> None:
    (backlog / NAME).rename(backlog / "000.md")


def delete(backlog: Path) -> None:
    (backlog / NAME).unlink()


def to_folder(backlog: Path) -> None:
    (backlog / NAME).unlink()
    (backlog / NAME).mkdir()
    (backlog / NAME / "inside").write_text("kept")


TEXTS: dict[Callable[[Path], None], str | None] = {
    edit: "edited",
    replace: "replaced",
    rename: "task",
    delete: None,
    to_folder: "kept",
}
"""What must be found somewhere in the workspace after each deed."""


def everything(watching: Watching) -> list[str]:
    """The texts of all files in the workspace."""
    return [path.read_text() for path in watching.workspace.folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("deed", TEXTS, ids=lambda deed: deed.__name__)
@pytest.mark.parametrize(
    "when",
    [5, 41, 49, 50, 51, 60, 109, 111, 200],
    ids=lambda when: f"at {when} s",
)
def test_nothing_is_lost_and_the_watch_goes_on(
    tmp_path: Path, deed: Callable[[Path], None], when: float
) -> None:
    """A changed item loses no text, whether it settles, is processed, failed or is done.

    The item is there at 3 s, taken at 33 s, fails at 50 s, is taken again at 110 s, approved at
    120 s. In every case a second item is completed in the end.
    """
    watching = Watching(
        tmp_path, loops=[(17, "the line was cut"), *[(10, "approved")] * 9], retry_seconds=60
    )
    backlog = watching.workspace.backlog
    watching.write(3, NAME)

    def act() -> None:
        if (backlog / NAME).exists():
            deed(backlog)

    watching.at(when, act, backlog)
    watching.write(300, "999.md", "the last one")
    seen = watching.play(600)
    assert {"next"} == {kind for _, kind, _ in seen}
    completed = [e.filename for _, _, e in seen if e.tag == "WatchItemCompleted"]
    assert "999.md" == completed[-1]
    done_before = when == 200  # approved and archived at 120 s
    expected = "task" if done_before else TEXTS[deed]
    assert expected is None or expected in everything(watching)


def test_the_folder_is_removed_and_made_again(tmp_path: Path) -> None:
    """A backlog folder that goes away is an empty backlog; one that comes back is watched."""
    watching = Watching(tmp_path, loops=[(5, "approved")])
    backlog = watching.workspace.backlog
    watching.at(10, lambda: shutil.rmtree(backlog), backlog)
    watching.at(50, backlog.mkdir, backlog)
    watching.write(60, NAME)
    assert [
        (0, "WatchBacklogWaiting"),
        (90, "WatchProcessingItem", NAME),
        (95, "LoopApproved"),
        (95, "WatchItemCompleted", NAME),
        (95, "WatchBacklogWaiting"),
    ] == watching.story(200)


def test_the_folder_is_removed_while_its_item_is_worked_on(tmp_path: Path) -> None:
    """The run ends, there is nothing to archive, and the watch goes on."""
    watching = Watching(tmp_path, loops=[(50, "approved"), (5, "approved")])
    backlog = watching.workspace.backlog
    watching.write(0, NAME)
    watching.at(10, lambda: shutil.rmtree(backlog), backlog)
    watching.at(70, lambda: backlog.mkdir(exist_ok=True), backlog)
    watching.write(71, "002.md")
    story = watching.story(200)
    assert (50, "LoopApproved") in story
    assert "WatchItemCompleted" in {entry[1] for entry in story if entry[-1] == "002.md"}
