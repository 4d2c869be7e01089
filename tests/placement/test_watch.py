"""A watch whose items are worked on by workers: they land as from slots, once each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from cuggino import events as ev
from cuggino.agents.base import SpawnOptions
from cuggino.errors import AgentFailed
from cuggino.storage.journal import list_journals, read_journal
from cuggino.testing import Do, Item, Say, Wait, Write
from tests.git_project import isolate_git
from tests.placement.agent import PLAYS, sessions
from tests.placement.linked import ClusterProject, tags

FULL = ["planning", "implementing", "reviewing"]


@pytest.mark.real_agent
def test_conflict(project: ClusterProject) -> None:
    """Both candidates land, the second after its agents have resolved the conflict."""

    def add_line(name: str, options: SpawnOptions) -> Sequence[Item]:
        shared = options.cwd / "shared.txt"

        def add(_: SpawnOptions) -> None:
            kept = [line for line in shared.read_text().splitlines() if line[:1] not in "<=>"]
            shared.write_text("".join(f"{line}\n" for line in dict.fromkeys([*kept, name])))

        return [Do(add), Say(f"<DONE>Add {name}</DONE>")]

    for name in ("one", "two"):
        PLAYS[name, "implementing"] = [partial(add_line, name)] * 2
    project.item("one", "two")
    events = project.watch()
    first, second = project.landed()
    assert {"one", "two"} == {first, second}
    (back,) = (event for event in events if isinstance(event, ev.WatchSentBack))
    assert ("conflict", ("shared.txt",)) == (back.reason, back.paths)
    lines = (project.folder / "shared.txt").read_text().splitlines()
    assert ["begin", "one", "two"] == sorted(lines)
    assert FULL == sessions(first)
    assert [*FULL, "implementing", "reviewing"] == sessions(second)
    workers = [event.worker for event in events if isinstance(event, ev.WatchSlotPrepared)]
    assert 3 == len(workers)
    assert set(workers) <= {"w1", "w2", "w3"}
    assert "" == project.git.git("status", "--porcelain")
    states = [read_journal(path) for path in list_journals(project.workspace.journal)]
    assert ["approved"] * 3 == [one.state for one in states if one.started.kind == "run"]


@pytest.mark.parametrize(
    "role",
    [
        pytest.param(role, marks=[] if role == "implementing" else [pytest.mark.real_agent])
        for role in FULL
    ],
)
def test_lost_worker(project: ClusterProject, role: str) -> None:
    """An attempt goes on elsewhere from the stage that was not finished."""

    def lose(_: SpawnOptions) -> Sequence[Item]:
        return [
            Write("lost.txt", "lost\n"),
            Do(lambda _: project.link.kill(project.link.attempts[-1])),
            Wait(60),
        ]

    PLAYS["one", role] = [lose]
    project.item("one")
    events = project.watch()
    assert ["one"] == project.landed()
    at = FULL.index(role)
    assert [*FULL[: at + 1], *FULL[at:]] == sessions("one")
    (gone,) = (event for event in events if isinstance(event, ev.WatchPlaceGone))
    assert ("w1", "it was killed") == (gone.worker, gone.reason)
    assert ["w1", "w2"] == [one.placed.worker for one in project.link.attempts]
    assert {"one.txt"} == set(project.git.git("ls-files", "*.txt").split()) - {"shared.txt"}
    assert 1 == tags(events, "LoopApproved").count("LoopApproved one")


@pytest.mark.real_agent
def test_worker_lost_with_its_candidate(project: ClusterProject) -> None:
    """A candidate that was pushed but not reported needs no agent again."""
    project.link.when("WatchCandidate", project.link.kill)
    project.item("one")
    events = project.watch()
    assert (["one"], FULL) == (project.landed(), sessions("one"))
    assert ["WatchPlaceGone one", "WatchCandidate one", "WatchLanded one"] == tags(
        events, "WatchPlaceGone", "WatchCandidate", "WatchLanded"
    )


@pytest.mark.real_agent  # watches on several machines: with the second command
def test_uncommitted_work_goes_on_elsewhere(project: ClusterProject) -> None:
    """Files left by a failed session reach the next one on another worker, uncommitted."""
    found: list[str] = []

    def fail(_: SpawnOptions) -> Sequence[Item]:
        return [Write("half.txt", "half\n"), AgentFailed("no", reason="bad_request")]

    def look(options: SpawnOptions) -> Sequence[Item]:
        found.append((options.cwd / "half.txt").read_text())
        found.append(project.git.git("status", "--porcelain", cwd=options.cwd))
        return [Say("<DONE>Do it</DONE>")]

    PLAYS["one", "implementing"] = [fail, look]
    project.item("one")
    project.watch()
    project.link.dead.add("w1")
    project.watch()
    assert ["one"] == project.landed()
    assert ["half\n", "?? half.txt\n"] == found
    assert "half.txt" in project.git.committed()


@pytest.mark.real_agent  # watches on several machines: with the second command
def test_three_lost_workers(project: ClusterProject) -> None:
    """An attempt that has lost its third place fails; the item is tried again later."""
    project.link.when("PlanningStart", project.link.kill)
    project.link.when("PlanWritten", project.link.kill)
    project.link.when("ImplementingStart", project.link.kill)
    project.item("one")
    retry = project.watch()[-1]
    assert isinstance(retry, ev.WatchItemRetry)
    assert "it was killed" == retry.message
    assert ["planning", "planning"] == sessions("one")[:2]


@pytest.mark.parametrize("within", ["sub folder", pytest.param(".", marks=pytest.mark.real_agent)])
def test_files_that_git_does_not_have(project: ClusterProject, tmp_path: Path, within: str) -> None:
    """Uncommitted specifications and `.worktreeinclude` files are there, and are not committed."""
    project = ClusterProject(tmp_path / "within", within=within)
    paths = (".specs/new.md", "api [1].secret", "deep/b.secret")
    for path in paths:
        (project.folder / path).parent.mkdir(exist_ok=True)
        (project.folder / path).write_text(path)
    (project.folder / ".specs" / "link.md").symlink_to("new.md")
    (project.folder / "unnamed.secret").write_text("stays here")
    (project.folder / ".worktreeinclude").write_text("api*.secret\n/deep/*\n.specs/*\n")
    found: dict[str, str] = {}

    def look(options: SpawnOptions) -> Sequence[Item]:
        names = (*paths, ".specs/link.md", "unnamed.secret")
        there = (name for name in names if (options.cwd / name).is_file())
        found.update((name, (options.cwd / name).read_text()) for name in there)
        return [Write("one.txt", "one\n"), Say("<DONE>Do it</DONE>")]

    PLAYS["one", "implementing"] = [look]
    project.item("one")
    project.watch()
    assert ["one"] == project.landed()
    assert {**{path: path for path in paths}, ".specs/link.md": ".specs/new.md"} == found
    prefix = "" if within == "." else f"{within}/"
    assert f"{prefix}one.txt" in project.git.committed()
    assert not [name for name in project.git.committed() if "secret" in name or "new.md" in name]


@pytest.mark.real_agent
def test_spec_issue(project: ClusterProject) -> None:
    """The question of a remote agent waits for a person here, and the run has ended."""
    PLAYS["one", "planning"] = [lambda _: [Say("<SPEC_ISSUE>How is it spelled?</SPEC_ISSUE>")]]
    project.item("one")
    events = project.watch()
    (issue,) = (event for event in events if isinstance(event, ev.LoopSpecIssue))
    assert [issue.filename] == project.workspace.spec_issue_names()
    (text,) = (path.read_text() for path in project.workspace.spec_issues.iterdir())
    assert "How is it spelled?" in text
    journals = [read_journal(path) for path in list_journals(project.workspace.journal)]
    assert ["spec_issue"] == [one.state for one in journals if one.started.kind == "run"]
    (project.workspace.spec_issues / issue.filename).unlink()
    project.watch()
    assert ["one"] == project.landed()
    assert ["planning", *FULL] == sessions("one")


@pytest.mark.real_agent
def test_refs_of_landed_items(project: ClusterProject) -> None:
    """The next watch removes the refs of what has landed, and of nothing else."""
    project.item("one")
    project.watch()
    assert ["given/one.md/base", "work/one.md"] == project.shared_refs()
    base = project.git.git("rev-parse", "main").strip()
    unfinished = project.git.git("commit-tree", f"{base}^{{tree}}", "-p", base, "-m", "x").strip()
    project.git.git("push", "-q", "origin", f"{unfinished}:refs/cuggino/work/other.md")
    project.watch()
    assert ["work/other.md"] == project.shared_refs()
    assert not list(project.workspace.wip.glob("placed/*"))


PLAY = """
repeat = true
[[planning]]
[[planning.steps]]
write = "$CUGGINO_PLAN_FILE"
text = "# Plan\\n\\n## Task 1: write it\\n"
[[planning.steps]]
say = "<PLAN_COMPLETE>One task.</PLAN_COMPLETE>"
[[implementing]]
[[implementing.steps]]
write = "word.txt"
text = "word\\n"
[[implementing.steps]]
say = "<DONE>feat: word</DONE>"
[[reviewing]]
[[reviewing.steps]]
say = "<APPROVED>fine</APPROVED>"
"""


@pytest.mark.real_agent
def test_file_of_a_scripted_agent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The scenario in the project travels, committed or not, and is not part of the work."""
    isolate_git(monkeypatch, tmp_path / "home")
    project = ClusterProject(tmp_path, agent="scripted:play.toml", slots=1)
    (project.folder / "play.toml").write_text(PLAY)
    project.item("one")
    project.watch()
    assert ["one"] == project.landed()
    assert "word.txt" in project.git.git("ls-files")
    assert "?? play.toml\n" == project.git.git("status", "--porcelain")
    project.link.close()
