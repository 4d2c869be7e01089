"""Attempts of items in slots: their folders, the state they share, and the remains they leave."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from reactivex import throw

from cuggino import Config, events as ev, run
from cuggino.errors import AgentFailed, LoopError
from cuggino.gate import GitWork
from cuggino.guard_audit import JudgedCall, audit_run
from cuggino.loops import LoopRunOptions, Services
from cuggino.loops.watch.attempt import in_slot_too, slot_services
from cuggino.loops.watch.placement import Returned
from cuggino.stages import GitRepository
from cuggino.storage import attempt_of, list_journals
from cuggino.testing import AgentRun, Do, InMemoryAgent, Say, Use, Write
from tests.git_project import GitProject, isolate_git
from tests.loops.slot_home import GOOD, PLAN, Home, names, rest, whole, work


class KilledForTest(Exception):
    """The process ends here."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A project in its own folder, with the slots beside it."""
    isolate_git(monkeypatch, tmp_path / "home")
    return Home(GitProject(tmp_path / "project"))


def test_an_item_is_worked_on_in_its_slot(home: Home) -> None:
    """The work is committed there; the journal is at home, and the project stays as it is."""
    agent, seen, made = home.makes(whole(), slot=2)
    assert ("WatchSlotPrepared", "WatchCandidate") == (names(seen)[0], names(seen)[-1])
    assert ev.LoopApproved(iteration=1).of_item("a.md") in seen
    assert {"a.md"} == {event.item for event in seen}
    assert "b.txt" in home.git(home.slots[1], "ls-tree", "--name-only", made.commit)
    assert ["approved"] == home.states()
    assert [] == list(home.workspace.wip.iterdir())
    assert (home.base, "") == (home.head(), home.project.git("status", "--porcelain"))
    for spawned in agent.spawned:
        assert home.slots[1].folder == spawned.cwd
        assert "2" == spawned.env["CUGGINO_SLOT"]
        assert "20200" == spawned.env["PORT"]
        assert spawned.guard is None or str(home.slots[1].folder) == spawned.guard.project


def test_the_gate_looks_at_the_work_in_the_slot(home: Home) -> None:
    """What an agent changes in its slot is found there, though the project stays as it is."""
    home.makes(whole())
    folder = home.slots[0].folder
    services = Services(
        agent=InMemoryAgent({}),
        workspace=home.workspace,
        repository=GitRepository(home.project.root),
        work=GitWork.of(home.project.root, home.workspace.snapshots),
    )
    there = slot_services(services, LoopRunOptions(focus="x", cwd=folder)).work
    start = run(there.state())
    assert start is not None
    (folder / ".specs/a.md").write_text("easier\n")
    found = run(there.changed(start))
    assert found is not None
    assert [".specs/a.md"] == found["changed"]


def test_an_item_that_asked_begins_anew(home: Home) -> None:
    """After an answered question an item without work begins on what has landed since."""
    asks = [Say("<SPEC_ISSUE>Which one?</SPEC_ISSUE>")]
    _, seen, error = home.attempt({"planning": [PLAN], "implementing": [asks]})
    assert error is None
    assert isinstance(seen[-1], ev.LoopSpecIssue)
    home.project.write("landed.txt", "by another item\n")
    home.project.git("add", "-A")
    home.project.git("commit", "-q", "-m", "Land")
    _, _, made = home.makes(whole(), base=home.head(), number=2)
    assert "landed.txt" in home.git(home.slots[0], "ls-tree", "--name-only", made.commit)
    assert home.head() == made.base


def test_commands_know_their_slot(home: Home) -> None:
    """The setup and the check command have the variables of the slot, too."""
    command = 'echo "$CUGGINO_SLOT $PORT" >> ports.txt'
    home.attempt(whole(), slot=3, options={"setup_command": command, "check_command": command})
    assert ["3 20300"] * 3 == (home.slots[2].folder / "ports.txt").read_text().splitlines()


def test_an_unfinished_run_is_resumed_in_its_slot(home: Home) -> None:
    """Planning that was paid for is not repeated, nor is the slot prepared again."""
    failing: dict[str, list[Any]] = {"planning": [PLAN], "implementing": []}
    _, _, error = home.attempt(failing)
    assert isinstance(error, LoopError)
    agent, seen, _ = home.makes(rest())
    assert ["WatchSlotPrepared", "RunResumed"] == names(seen)[:2]
    assert ["implementing", "reviewing"] == [spawned.role for spawned in agent.spawned]
    assert ["approved"] == home.states()


@pytest.mark.real_agent
def test_a_run_without_a_result_is_followed_on_its_work(home: Home) -> None:
    """The next run of the item begins with what the stalled one has left."""
    idle = [[Say("<PROGRESS>Nothing</PROGRESS>")] for _ in range(9)]
    begun = [Write("c.txt", "c\n"), Say("<PROGRESS>Begin</PROGRESS>")]
    stuck: dict[str, list[Any]] = {"planning": [PLAN] * 2, "implementing": [begun, *idle]}
    _, seen, _ = home.attempt(stuck, options={"progress_patience": 2})
    assert isinstance(seen[-1], ev.LoopStalled)
    home.makes(whole(), number=2)
    assert {"b.txt", "c.txt"} <= set(home.git(home.slots[0], "ls-files").split())


def test_another_item_begins_anew(home: Home) -> None:
    """Nothing of an item is resumed for another one, or for one that was edited."""
    home.attempt({"planning": [PLAN], "implementing": []})
    agent, seen, _ = home.makes(whole(), options={"item": "a.md 4567"})
    assert "RunResumed" not in names(seen)
    assert "planning" == agent.spawned[0].role


def test_an_unfinished_run_is_resumed_in_another_slot(home: Home) -> None:
    """Files, commits and the session go along; the other slot is free for another item."""
    begun = [Write("c.txt", "c\n"), Say("<PROGRESS>Begin</PROGRESS>")]

    def fail(options: object) -> None:
        (home.slots[0].folder / "d.txt").write_text("not committed\n")
        raise AgentFailed("gone", reason="auth")

    _, _, error = home.attempt({"planning": [PLAN], "implementing": [begun, [Do(fail)]]})
    assert isinstance(error, LoopError)
    agent, _, made = home.makes(rest(), slot=2)
    assert ["implementing", "reviewing"] == [spawned.role for spawned in agent.spawned]
    assert (2, home.base) == (made.slot, made.base)
    assert {"b.txt", "c.txt", "d.txt"} <= set(home.git(home.slots[1], "ls-files").split())
    assert ["approved"] == home.states()
    assert [] == home.workspace.desk(home.slots[0].folder).sessions()


def test_an_unfinished_run_leaves_a_slot_where_another_works(home: Home) -> None:
    """What is taken from there does not look like a change by the agent at work."""
    begun = [Write("c.txt", "c\n"), Say("<PROGRESS>Begin</PROGRESS>")]
    home.attempt({"planning": [PLAN], "implementing": [begun]})
    desk = home.workspace.desk(home.slots[0].folder)
    agents: list[InMemoryAgent] = []

    def resume_elsewhere(_options: object) -> None:
        before = {path: path.read_bytes() for path in desk.folder.rglob("*.md")}
        record = attempt_of(desk).readable()
        agent, _, _ = home.makes(rest(), slot=2)
        assert before == {path: path.read_bytes() for path in desk.folder.rglob("*.md")}
        assert record == attempt_of(desk).readable()
        agents.append(agent)

    plan = AgentRun(
        [Do(resume_elsewhere), Say("<PLAN_COMPLETE>One.</PLAN_COMPLETE>")], plan="# Plan"
    )
    sessions: dict[str, list[Any]] = {
        "planning": [plan],
        "implementing": [work("x.txt")],
        "reviewing": [GOOD],
    }
    _, seen, _ = home.makes(sessions, options={"item": "b.md 4567"}, item="b.md")
    assert not [event for event in seen if isinstance(event, ev.RoleViolated)]
    assert [["implementing", "reviewing"]] == [[one.role for one in it.spawned] for it in agents]


def test_a_run_whose_slot_is_gone_begins_anew(home: Home) -> None:
    """Nothing is resumed on top of a project that lacks its commits."""
    begun = [Write("c.txt", "c\n"), Say("<PROGRESS>Begin</PROGRESS>")]
    home.attempt({"planning": [PLAN], "implementing": [begun]})
    shutil.rmtree(home.slots[0].root)
    agent, _, _ = home.makes(whole())
    assert "planning" == agent.spawned[0].role


@pytest.mark.real_agent
def test_a_slot_that_is_taken_keeps_the_run_of_its_item(home: Home) -> None:
    """Another item in the slot moves the work out of the way; it is resumed later all the same."""
    begun = [Write("c.txt", "c\n"), Say("<PROGRESS>Begin</PROGRESS>")]
    home.attempt({"planning": [PLAN], "implementing": [begun]})
    other = {"item": "b.md 4567"}
    home.makes(whole(work("x.txt")), options=other, item="b.md")
    assert "c.txt" not in home.git(home.slots[0], "ls-files").split()
    agent, _, _ = home.makes(rest())
    assert ["implementing", "reviewing"] == [spawned.role for spawned in agent.spawned]
    files = home.git(home.slots[0], "ls-files").split()
    assert ({"b.txt", "c.txt"} <= set(files), "x.txt" in files) == (True, False)


BAD = [Say("<REQUEST_CHANGES>Data loss.</REQUEST_CHANGES>")]


@pytest.mark.parametrize(("review", "approved"), [(GOOD, True), (BAD, False)])
@pytest.mark.parametrize("killed", [False, True])
def test_a_candidate_knows_whether_it_is_approved(
    home: Home, review: list[Any], approved: bool, killed: bool
) -> None:
    """A run whose process was killed before its candidate was published is not repeated."""
    sessions: dict[str, list[Any]] = {
        "planning": [PLAN],
        "implementing": [work("b.txt")],
        "reviewing": [review],
    }
    options = {"max_iterations": 1}
    publish = home.publish
    if killed:
        home.publish = lambda *_: throw(KilledForTest())
        _, _, error = home.attempt(sessions, options=options)
        assert isinstance(error, KilledForTest)
        home.publish = publish
    agent, _, made = home.makes({} if killed else sessions, options=options)
    assert approved == made.approved
    assert (0 if killed else 3) == len(agent.spawned)
    assert "b.txt" in home.project.git("ls-tree", "--name-only", "refs/cuggino/candidates/a.md")


def test_an_item_that_comes_again(home: Home) -> None:
    """One that a person adds once more, with the same text, is worked on once more."""
    for file in ("b.txt", "c.txt"):
        agent, _, _ = home.makes(whole(work(file)))
        assert 3 == len(agent.spawned)
    assert "b.txt" not in home.git(home.slots[0], "ls-files").split()


LINES = "one\ntwo\nthree\n"


class Conflict:
    """An item whose candidate conflicts with what has landed: both changed the second line."""

    def __init__(self, home: Home) -> None:
        self.home = home
        home.project.write("a.txt", LINES)
        self._land("Add a.txt")
        home.base = home.head()
        _, _, self.candidate = home.makes(whole(work("a.txt", LINES.replace("two", "TWO"))))
        home.project.write("a.txt", LINES.replace("two", "zwei"))
        home.project.write("b.txt", "landed\n")
        home.project.write(".specs/a.md", "spec, changed\n")
        self._land("Translate a.txt")

    def _land(self, message: str) -> None:
        self.home.project.git("add", "-A")
        self.home.project.git("commit", "-q", "-m", message)

    def attempt(
        self, sessions: dict[str, list[Any]], **given: Any
    ) -> tuple[InMemoryAgent, list[ev.Event], BaseException | None]:
        back = ev.WatchSentBack(filename="a.md", reason="conflict", paths=("a.txt",), returns=1)
        returned = Returned(self.candidate, back)
        given = {"number": 2, "base": self.home.head(), "returned": returned, **given}
        return self.home.attempt(sessions, given.pop("slot", 2), **given)

    def makes(
        self, sessions: dict[str, list[Any]], **given: Any
    ) -> tuple[InMemoryAgent, list[ev.Event], ev.WatchCandidate]:
        agent, seen, error = self.attempt(sessions, **given)
        assert error is None
        assert isinstance(seen[-1], ev.WatchCandidate)
        return agent, seen, seen[-1]

    def git(self, *args: str) -> str:
        return self.home.git(self.home.slots[1], *args)


@pytest.fixture
def conflict(home: Home) -> Conflict:
    return Conflict(home)


BOTH = work("a.txt", LINES.replace("two", "TWO zwei"))


def test_a_conflict_is_resolved_and_reviewed(conflict: Conflict) -> None:
    """One agent resolves, the check runs, and the reviewer sees both diffs; nothing is planned."""
    agent, seen, made = conflict.makes(
        rest(BOTH), options={"setup_command": "true", "check_command": "true"}
    )
    assert [
        "WatchSlotPrepared",
        "IterationStart",
        "ImplementingStart",
        "ToolCall",
        "ToolResult",
        "Done",
        "CommitPerformed",
        "SetupCommandStarted",
        "SetupCommandOutput",
        "ReviewingStart",
        "CheckCommandStarted",
        "CheckCommandOutput",
        "Approved",
        "LoopApproved",
        "WatchCandidate",
    ] == [name for name in names(seen) if name != "AgentMessage"]
    assert conflict.home.head() == made.base
    resolver, reviewer = agent.spawned
    for prompt in (resolver.system_prompt or "", reviewer.system_prompt or ""):
        assert "+TWO\n" in prompt
        assert "+zwei\n" in prompt
    assert "the file" in (resolver.system_prompt or "")
    assert "Translate a.txt" in (resolver.system_prompt or "")
    assert f"`git diff --text {conflict.home.head()}..HEAD`" in (reviewer.system_prompt or "")
    parents = conflict.git("log", "-1", "--format=%P").split()
    assert [conflict.candidate.commit, conflict.home.head()] == parents
    assert "TWO zwei" in conflict.git("show", "HEAD:a.txt")
    assert ("landed\n", "spec, changed\n") == (
        conflict.git("show", "HEAD:b.txt"),
        conflict.git("show", "HEAD:.specs/a.md"),
    )


def test_a_conflict_that_is_left(conflict: Conflict) -> None:
    """Conflict markers left in a file are named in the next prompt; the third try is the last."""
    left = [Say("<DONE>Done</DONE>")]
    agent, seen, error = conflict.attempt({"implementing": [left] * 3})
    assert error is None
    assert isinstance(seen[-1], ev.LoopStalled)
    assert "conflict markers are left in a.txt" in seen[-1].message
    assert "conflict markers are left in a.txt" in (agent.spawned[1].system_prompt or "")
    assert "HistoryRewritten" not in names(seen)  # what it should have merged is no lost history


@pytest.mark.real_agent
def test_a_merge_that_was_given_up(conflict: Conflict) -> None:
    """A merge that an agent gave up is started again, on top of the agent's own work."""

    def give_up(_options: object) -> None:
        conflict.git("reset", "--quiet", "--hard")

    # Giving up also puts the specifications back, which is void: the session is repeated.
    instead = [*work("c.txt")]
    agent, _, _ = conflict.makes(rest([Do(give_up), *instead], instead, BOTH))
    assert "started again" in (agent.spawned[2].system_prompt or "")
    assert {"b.txt", "c.txt"} <= set(conflict.git("ls-files").split())
    assert "TWO zwei" in conflict.git("show", "HEAD:a.txt")


def test_an_agent_that_commits_the_merge(conflict: Conflict) -> None:
    """The agent's commit counts although its prompt forbids one, and so do uncommitted changes."""

    def commit(_options: object) -> None:
        conflict.git("commit", "-q", "-a", "-m", "Merge both")

    resolving = [BOTH[0], Do(commit), Write("c.txt", "more\n"), BOTH[1]]
    conflict.makes(rest(resolving))
    assert "more\n" == conflict.git("show", "HEAD:c.txt")
    assert "" == conflict.git("status", "--porcelain")


@pytest.mark.real_agent
def test_specifications_of_a_slot_are_not_merged(conflict: Conflict) -> None:
    """Those that a person has not committed stay in the slot, and out of the commit."""

    def prepared() -> None:
        (conflict.home.slots[1].folder / ".specs" / "a.md").write_text("spec, of a person\n")

    conflict.makes(rest(BOTH), prepared=prepared)
    assert "spec, changed\n" == conflict.git("show", "HEAD:.specs/a.md")
    specs = conflict.home.slots[1].folder / ".specs" / "a.md"
    assert "spec, of a person\n" == specs.read_text()


def test_a_resolution_is_resumed(conflict: Conflict) -> None:
    """After the agent has failed, the merge is still under way, and another one resolves it."""
    _, _, error = conflict.attempt({"implementing": []})
    assert isinstance(error, LoopError)
    conflict.makes(rest(BOTH), number=3)
    assert "TWO zwei" in conflict.git("show", "HEAD:a.txt")


@pytest.mark.real_agent
def test_a_resolution_is_resumed_in_another_slot(conflict: Conflict) -> None:
    """The merge is under way there, too, with what the first agent has left of it."""
    left = [Say("<DONE>Done</DONE>")]
    _, _, error = conflict.attempt({"implementing": [left]})
    assert isinstance(error, LoopError)
    slot = conflict.home.slots[2]
    agent, _, made = conflict.makes(rest(left, BOTH), slot=3, number=3)
    assert "conflict markers are left in a.txt" in (agent.spawned[1].system_prompt or "")
    assert 3 == made.slot
    assert "TWO zwei" in conflict.home.git(slot, "show", "HEAD:a.txt")
    parents = conflict.home.git(slot, "log", "-1", "--format=%P").split()
    assert [conflict.candidate.commit, conflict.home.head()] == parents


def test_a_merge_that_was_killed_is_begun_anew(conflict: Conflict) -> None:
    """Also with specifications that are not those of the commit."""
    conflict.home.project.write(".specs/a.md", "spec, of a person\n")
    _, _, error = conflict.attempt({"implementing": []})
    assert isinstance(error, LoopError)
    slot = conflict.home.slots[1]
    repository = GitRepository(slot.folder, exclude=(Path(".cuggino"),))
    merge = repository.merge(conflict.home.head(), "Merge", exclude=(Path(".specs"),))
    merged = run(merge)
    assert merged is not None
    assert ("a.txt",) == merged.paths
    assert "spec, of a person\n" == (slot.folder / ".specs" / "a.md").read_text()
    assert conflict.home.head() == conflict.git("rev-parse", "MERGE_HEAD").strip()


@pytest.mark.real_agent
def test_a_review_of_a_resolution(conflict: Conflict) -> None:
    """Findings of a resolution's review are planned and implemented as in every iteration."""
    review = AgentRun([Say("<REQUEST_CHANGES>More</REQUEST_CHANGES>")], review="one is missing")
    agent, _, _ = conflict.makes(
        {"planning": [PLAN], "implementing": [BOTH, work("d.txt")], "reviewing": [review, GOOD]}
    )
    roles = [spawned.role for spawned in agent.spawned]
    assert ["implementing", "reviewing", "planning", "implementing", "reviewing"] == roles
    assert "one is missing" in (agent.spawned[2].system_prompt or "")


def test_a_failed_check_sends_an_item_back(home: Home) -> None:
    """It goes on from its candidate, with the trunk merged into it, and the output as review."""
    _, _, candidate = home.makes(whole())
    home.project.write("other.txt")
    home.project.git("add", "-A")
    home.project.git("commit", "-q", "-m", "Others")
    back = ev.WatchSentBack(filename="a.md", reason="check", output="2 words, limit 1", returns=1)
    agent, _, _ = home.makes(
        whole(work("c.txt")), slot=2, base=home.head(), number=2, returned=Returned(candidate, back)
    )
    assert "2 words, limit 1" in (agent.spawned[0].system_prompt or "")
    kept = home.git(home.slots[1], "ls-files").split()
    assert {"b.txt", "c.txt", "other.txt"} <= set(kept)


def test_hidden_paths_of_the_project_are_hidden_in_a_slot(home: Home) -> None:
    """A path of the project stands for the same one in the slot, too; the project itself not."""
    slot, project = home.slots[1], home.project.root
    paths = ["/elsewhere", "~/.secrets", f"{project}/.env", str(project)]
    assert [*paths, f"{slot.root}/.env"] == in_slot_too(paths, slot)


def test_the_guard_audit_of_a_run_in_a_slot(home: Home) -> None:
    """Its calls are judged as they were made: the slot is the project."""
    inside = home.slots[0].folder / "b.txt"
    writes = [Write(str(inside), "b\n"), Say("<DONE>Write it</DONE>")]
    outside = f"echo x > {home.slots[1].folder}/b.txt"
    tried = [Use("Bash", {"command": outside}, output="denied", is_error=True), *writes]
    home.makes(whole(tried))
    (journal,) = list_journals(home.workspace.journal)
    calls: list[JudgedCall] = []
    run(audit_run(journal, project=home.project.root, config=Config()), calls.append)
    assert [False, True] == [call.verdict.is_allowed for call in calls]
