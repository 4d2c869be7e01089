"""A run with several hands, with real git and agents in memory."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, just, never, operators as ops, throw
from reactivex.subject import ReplaySubject, Subject

import cuggino
from cuggino import Config, Runtime, events as ev
from cuggino.agents.base import Capabilities, LlmAgent, SpawnOptions
from cuggino.config import AttemptChoice
from cuggino.errors import AgentFailed, ConfigError, Interrupted
from cuggino.events import LlmAgentEvent
from cuggino.loops import LoopRunOptions, LoopService
from cuggino.runs import RunState
from cuggino.storage import list_journals, read_journal
from cuggino.testing import Say
from cuggino.testing.acts import session_of
from tests.git_project import GitProject, isolate_git, without_comparisons

Work = Callable[[Path, str], str | Observable[str]]
"""What an agent does in a folder, given the plan; returns its last message, or emits it later."""


def writes(name: str, text: str = "x\n") -> Callable[[Path, str], str]:
    """Return the work of writing a file."""

    def work(folder: Path, _plan: str) -> str:
        (folder / name).write_text(text)
        return f"<DONE>Write {name}</DONE>"

    return work


def adds(line: str) -> Work:
    """Return the work of adding a line to a shared file, also between the sides of a conflict."""

    def work(folder: Path, _plan: str) -> str:
        shared = folder / "shared.txt"
        lines = [*shared.read_text().splitlines(), line] if shared.exists() else [line]
        kept = dict.fromkeys(one for one in lines if one[:3] not in ("<<<", "===", ">>>"))
        shared.write_text("\n".join(kept) + "\n")
        return f"<PROGRESS>Add {line}</PROGRESS>"

    return work


def asks(_folder: Path, _plan: str) -> str:
    return "<SPEC_ISSUE>Which one?</SPEC_ISSUE>"


@dataclass(slots=True)
class TaskAgent(LlmAgent):
    """Plans a task for each of the `tasks`, does them by their titles, and approves."""

    tasks: Mapping[str, Work]
    fields: Mapping[str, str] = field(default_factory=dict)
    """The lines below the headings, by title; by default a task comes after nothing."""
    name: str = "tasks"
    sessions: list[str] = field(default_factory=list)
    """The titles of the tasks that agents worked on, and the roles of the other agents."""
    plans: list[str] = field(default_factory=list)
    """What implementing agents read as their plans."""
    prompts: list[str] = field(default_factory=list)
    reviews: list[str] = field(default_factory=list)
    """The system prompts of reviewing agents."""
    on_session: Callable[[str], None] = lambda _title: None

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(cost="dollars")

    def check(self) -> str:
        return "in memory"

    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        said = self._work(options)
        later: Observable[str] = just(said) if isinstance(said, str) else said

        def session(text: str) -> Observable[LlmAgentEvent]:
            return session_of([Say(text)], options)

        return later.pipe(ops.map(session), ops.merge_all())

    def _work(self, options: SpawnOptions) -> str | Observable[str]:
        self.prompts.append(options.prompt)
        if options.role != "implementing":
            title = str(options.role)
        elif options.prompt.startswith("Resolve"):
            title = "resolve"
            self.plans.append("")
        else:
            plan = Path(options.env["CUGGINO_SESSION_FILE"]).read_text()
            body, _, log = plan.partition("# Progress Log")
            titles = re.findall(r"^## Task \d+: (\S+)", body, re.MULTILINE)
            done = len(re.findall("^<(?:PROGRESS|DONE)>", log, re.MULTILINE))
            title = titles[done] if len(titles) > 1 else titles[0]
            self.plans.append(body)
        self.sessions.append(title)
        self.on_session(title)
        if title == "planning":
            sections = (
                f"## Task {n}: {one}\n{self.fields.get(one, 'after: none')}\n"
                for n, one in enumerate(self.tasks, 1)
            )
            Path(options.env["CUGGINO_PLAN_FILE"]).write_text("# Plan\n\n" + "\n".join(sections))
            return "<PLAN_COMPLETE>Planned.</PLAN_COMPLETE>"
        if title == "reviewing":
            self.reviews.append(options.system_prompt or "")
            return "<APPROVED>As specified.</APPROVED>"
        work = self.tasks.get(title, adds("resolved"))
        return work(options.cwd, self.plans[-1])


class HandsProject:
    """A project, and what became of a run in it; a `whole` one has snapshots."""

    def __init__(
        self, place: Path, agent: TaskAgent, *, whole: bool = False, **config: Any
    ) -> None:
        self._whole = whole
        self.git = GitProject(place / "project")
        self.git.write(".specs/words.md", "A file for each word.\n")
        self.git.write(".gitignore", ".cuggino\n")
        self.git.git("add", "-A")
        self.git.git("commit", "-q", "-m", "Begin")
        self.agent = agent
        check = "! grep -q '<<<<' *.txt && ! grep -q red *.txt"
        settings = {"commit": True, "sandbox": "off", "check_command": check, "hands": 3}
        self.config = Config(**{**settings, "gate": "block", **config})
        self.events: list[ev.Event] = []

    @property
    def runtime(self) -> Runtime:
        live = Runtime.live(cwd=self.git.root, config=self.config, agent=self.agent)
        return live if self._whole else without_comparisons(live)

    def run(self, *, resume: bool = False, **given: Any) -> list[ev.Event]:
        """Run, or resume the run; return its events."""
        run = self.runtime.resume(**given) if resume else self.runtime.run(focus="Words", **given)
        self.events.clear()
        cuggino.run(run, self.events.append)
        return self.events

    def of(self, *kinds: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kinds)]

    def subjects(self) -> list[str]:
        """Return the subjects of the commits of the branch, the earliest first."""
        return self.git.git("log", "--reverse", "--format=%s", "main").splitlines()


@pytest.fixture(autouse=True)
def isolated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    isolate_git(monkeypatch, tmp_path / "home")


def project(place: Path, tasks: Mapping[str, Work], **fields: Any) -> HandsProject:
    """Return a project whose agent does the tasks; a field below a heading goes by its title."""
    below = {title: fields.pop(title) for title in tasks if title in fields}
    return HandsProject(place, TaskAgent(tasks, below), **fields)


def test_tasks_land_one_by_one_and_the_branch_moves_once(tmp_path: Path) -> None:
    """Each is a commit, as of a single hand; one journal has all, and all is pushed once.

    A task that comes after others begins when they have landed, with their work in its clone.
    """

    def joins(folder: Path, _plan: str) -> str:
        text = (folder / "b.txt").read_text() + (folder / "c.txt").read_text()
        return writes("a.txt", text)(folder, "")

    tasks = {"a": joins, **{name: writes(f"{name}.txt", f"{name}\n") for name in "bcd"}}
    words = project(tmp_path, tasks, a="after: 2, 3", push="origin/main", whole=True)
    remote = tmp_path / "remote.git"
    words.git.git("init", "--quiet", "--bare", str(remote))
    words.git.git("remote", "add", "origin", str(remote))
    words.run()
    assert isinstance(words.events[-1], ev.LoopApproved)
    assert words.events[-1].checked
    assert ["Begin", *(f"Write {name}.txt" for name in "abcd")] == sorted(
        words.subjects(), key=lambda subject: (subject != "Begin", subject)
    )
    assert "" == words.git.git("rev-list", "--merges", "main")
    assert "" == words.git.git("status", "--short")
    assert ["b\nc\n", *(f"{name}\n" for name in "bcd")] == [
        (words.git.root / f"{name}.txt").read_text() for name in "abcd"
    ]
    (started,) = words.of(ev.HandsStarted)
    (ended,) = words.of(ev.HandsEnded)
    assert ((3, 4), 4, {}) == ((started.hands, started.tasks), len(ended.landed), ended.undone)
    assert ["main"] == [event.branch for event in words.of(ev.WatchFollowed)]
    assert Counter({"planning": 1, "reviewing": 1, **dict.fromkeys("abcd", 1)}) == Counter(
        words.agent.sessions
    )
    workspace = words.runtime.workspace
    assert 1 == len(list_journals(workspace.journal))
    assert [] == list(workspace.wip.iterdir())
    hashes = words.git.git("log", "--format=%h", "--abbrev=7", "main").split()
    assert {event.commit_hash for event in words.of(ev.CommitPerformed)} == set(hashes[:-1])
    (pushed,) = words.of(ev.PushPerformed)
    head = words.git.git("rev-parse", "main").strip()
    assert head.startswith(pushed.commit_hash)
    assert head == words.git.git("rev-parse", "main", cwd=remote).strip()


def test_only_several_hands_explain_themselves_to_the_planner(tmp_path: Path) -> None:
    """With a single hand the prompt is as ever, and nothing is cloned."""
    words = project(tmp_path, {"a": writes("a.txt")}, hands=1)
    words.run()
    assert "after:" not in words.agent.prompts[0]
    assert ["project"] == [path.name for path in tmp_path.iterdir() if path.name != "home"]
    words.config = words.config.model_copy(update={"hands": 2})
    plans = ops.take_while(lambda event: not isinstance(event, ev.PlanComplete))
    cuggino.run(words.runtime.run(focus="Words").pipe(plans))
    assert "`after: 1, 2`" in words.agent.prompts[-1]


def test_a_list_is_done_by_one_hand(tmp_path: Path) -> None:
    """Tasks that share a file are done in their order, in one clone."""
    fields = dict.fromkeys("abc", "files: shared.txt")
    words = project(tmp_path, {"a": adds("a"), "b": adds("b"), "c": writes("c.txt")}, **fields)
    words.run()
    assert [] == words.of(ev.HandsStarted)
    assert ["Begin", "Add a", "Add b", "Write c.txt"] == words.subjects()


def test_tasks_that_come_back(tmp_path: Path) -> None:
    """An agent resolves a conflict; the other task is told why it came back, and lands green."""

    def repairs(folder: Path, plan: str) -> str:
        return writes("c.txt", "green\n" if "What came of it before" in plan else "red\n")(
            folder, plan
        )

    check = "! grep -q '<<<<' *.txt && ! grep -n red *.txt"
    tasks = {"a": adds("a"), "b": adds("b"), "c": repairs}
    words = project(tmp_path, tasks, check_command=check)
    words.run()
    back = {(event.reason, event.paths) for event in words.of(ev.WatchSentBack)}
    assert {("conflict", ("shared.txt",)), ("check", ())} == back
    lines = (words.git.root / "shared.txt").read_text().split()
    assert {"a", "b"} <= set(lines)
    assert "green\n" == (words.git.root / "c.txt").read_text()
    assert 2 == words.agent.sessions.count("c")
    assert "1:red" in next(plan for plan in words.agent.plans if "came of it" in plan)
    assert "" == words.git.git("log", "-S", "red", "--format=%h", "main", "--", "*.txt")
    assert 4 == len(words.subjects())


def test_a_question_ends_the_run_when_the_others_have_landed(tmp_path: Path) -> None:
    """The user's branch stays; the tasks after it do not begin."""
    words = project(tmp_path, {"a": asks, "b": writes("b.txt"), "c": writes("c.txt")}, c="after: 1")
    words.run()
    last = words.events[-1]
    assert isinstance(last, ev.LoopSpecIssue)
    assert "Which one?" == last.content
    assert [last.filename] == words.runtime.workspace.spec_issue_names()
    (ended,) = words.of(ev.HandsEnded)
    assert (("task-1.2",), {"task-1.1", "task-1.3"}) == (ended.landed, set(ended.undone))
    assert ["Begin"] == words.subjects()


def test_a_skipped_task_is_left_undone(tmp_path: Path) -> None:
    """The reviewer judges the rest."""
    commands: Subject[ev.ControlEvent] = Subject()
    words = project(tmp_path, {"a": writes("a.txt"), "b": writes("b.txt")})
    runtime = words.runtime.replace(control=commands)

    def look(event: ev.Event) -> None:
        words.events.append(event)
        if isinstance(event, ev.ImplementingStart) and event.item == "task-1.1":
            commands.on_next(ev.SkipAsked(item="task-1.1"))

    cuggino.run(runtime.run(focus="Words"), look)
    assert [("task-1.1", "skipped")] == [
        (left.filename, left.reason.split()[0].rstrip(",;:")) for left in words.of(ev.TaskLeft)
    ]
    assert ["Begin", "Write b.txt"] == words.subjects()
    assert isinstance(words.events[-1], ev.LoopApproved)


def test_a_task_that_waits_to_land_is_skipped(tmp_path: Path) -> None:
    """It is left undone, although no agent works on it; the one before it lands."""
    commands: Subject[ev.ControlEvent] = Subject()
    both = tmp_path / "both"
    both.touch()
    check = f"until [ -e {both} ]; do sleep 0.02; done"
    words = project(tmp_path, {"a": writes("a.txt"), "b": writes("b.txt")}, check_command=check)
    runtime = words.runtime.replace(control=commands)

    def look(event: ev.Event) -> None:
        words.events.append(event)
        made = [one.filename for one in words.of(ev.WatchCandidate)]
        match event:
            case ev.HandsStarted():
                both.unlink()
            case ev.WatchCandidate() if len(made) == 2:
                both.touch()
            case ev.CheckCommandOutput(item=str(lands)) if len(made) == 2:
                made.remove(lands)
                commands.on_next(ev.SkipAsked(item=made[0]))
            case _:
                pass

    cuggino.run(runtime.run(focus="Words"), look)
    assert [] == words.of(ev.ControlIgnored)
    (landed,) = [one.filename for one in words.of(ev.WatchLanded) if "task" in one.filename]
    (left,) = words.of(ev.TaskLeft)
    assert {"task-1.1", "task-1.2"} == {landed, left.filename}
    assert "skipped by a person" == left.reason
    assert isinstance(words.events[-1], ev.LoopApproved)


@pytest.mark.parametrize(
    "tag",
    [
        "WatchCandidate",
        *(
            pytest.param(tag, marks=pytest.mark.real_agent)
            for tag in ("WatchLanding", "WatchLanded", "HandsEnded", "Approved")
        ),
    ],
)
def test_a_resumed_run_pays_for_no_task_twice(tmp_path: Path, tag: str) -> None:
    """It is interrupted at its first event of a kind; only who was at work then begins again."""
    words = project(tmp_path, {name: writes(f"{name}.txt") for name in "abc"}, hands=2)
    interrupt: Subject[object] = Subject()
    done: set[str] = set()

    def look(event: ev.Event) -> None:
        if isinstance(event, ev.WatchCandidate) and event.filename.startswith("task-1."):
            done.add("abc"[int(event.filename[-1]) - 1])
        if event.tag == tag:
            interrupt.on_next("stop")

    with pytest.raises(Interrupted):
        cuggino.run(words.runtime.run(focus="Words", interrupt=interrupt), look)
    assert ["Begin"] == words.subjects()
    at_work = [title for title in words.agent.sessions if title in "abc" and title not in done]
    words.run(resume=True)
    assert isinstance(words.events[-1], ev.LoopApproved)
    assert done
    for title in "abc":
        assert 0 <= words.agent.sessions.count(title) - 1 <= at_work.count(title)
    assert 4 == len(words.subjects())
    assert "" == words.git.git("status", "--short")


class TestTheUsersBranch:
    """What its owner does while the hands are at work."""

    def test_files_in_the_way(self, tmp_path: Path) -> None:
        """The run fails, and ends without another agent when they are gone."""
        words = project(tmp_path, {"a": writes("a.txt"), "b": writes("b.txt")})
        mine = words.git.root / "a.txt"
        mine.write_text("mine\n")
        with pytest.raises(ConfigError, match=r"approved work has not reached main: .*a\.txt"):
            words.run()
        assert ("mine\n", ["Begin"]) == (mine.read_text(), words.subjects())
        mine.unlink()
        sessions = len(words.agent.sessions)
        words.run(resume=True)
        assert isinstance(words.events[-1], ev.LoopApproved)
        assert sessions == len(words.agent.sessions)
        assert 3 == len(words.subjects())

    @pytest.mark.real_agent  # tests/stages/slots/test_following.py: with the second command
    def test_a_commit_that_conflicts(self, tmp_path: Path) -> None:
        """What was approved is merged with it, resolved, and planned and reviewed again."""
        words = project(tmp_path, {"a": adds("a"), "b": writes("b.txt")})

        def commit(title: str) -> None:
            if title == "reviewing" and "mine" not in words.subjects():
                words.git.write("shared.txt", "mine\n")
                words.git.git("add", "-A")
                words.git.git("commit", "-qm", "mine")

        words.agent.on_session = commit
        words.run()
        assert isinstance(words.events[-1], ev.LoopApproved)
        assert {"a", "mine"} <= set((words.git.root / "shared.txt").read_text().split())
        assert 2 == words.agent.sessions.count("reviewing")
        assert "" == words.git.git("status", "--short")


class WithAttempts(HandsProject):
    """A plan whose task `a` has an attempt for each of the hints; `b`, with one, comes after it."""

    def __init__(self, place: Path, *hints: str, **config: Any) -> None:
        agent = TaskAgent(
            {"a": self._advised, "b": writes("b.txt")}, {"b": "after: 1\nattempts: 1"}
        )
        choices = [AttemptChoice(hint=hint) for hint in hints]
        settings = {"max_iterations": 1, "max_retries": 0, "attempts": choices, **config}
        super().__init__(place, agent, **settings)
        self.lost: ReplaySubject[str] = ReplaySubject()
        """The attempts that have lost, which an honest one waits for."""
        self._others = sum(hint in ("lie", "crash") for hint in hints)

    def _advised(self, folder: Path, plan: str) -> str | Observable[str]:
        """Write what the check refuses, crash, never end or do the work, as the plan advises."""
        hint = plan.rpartition("Advice for this attempt: ")[2].split()[0]
        if hint == "crash":
            return throw(AgentFailed("it crashed", reason="crash"))
        done = writes("a.txt", "red\n" if hint == "lie" else "green\n")(folder, plan)
        if hint == "hang":
            return never()
        if hint == "lie":
            return done
        return self.lost.pipe(ops.take(self._others), ops.to_list(), ops.map(lambda _: done))

    def look(self, event: ev.Event) -> None:
        self.events.append(event)
        if isinstance(event, ev.AttemptLost):
            self.lost.on_next(event.filename)

    def run(self, *, resume: bool = False, **given: Any) -> list[ev.Event]:
        run = self.runtime.resume(**given) if resume else self.runtime.run(focus="Words", **given)
        self.events.clear()
        cuggino.run(run, self.look)
        return self.events


class TestAttempts:
    """Tasks with several attempts, side by side, in clones beside the hands."""

    def test_the_first_that_passes_lands(self, tmp_path: Path) -> None:
        """It is checked and reviewed; the others are told of, and their work is kept."""
        words = WithAttempts(tmp_path, "lie", "hang", "honest", whole=True)
        words.run()
        last = words.events[-1]
        assert isinstance(last, ev.LoopApproved), last
        assert {
            "task-1.1-attempt-1": "not-approved",
            "task-1.1-attempt-2": "overtaken",
        } == {one.filename: one.why for one in words.of(ev.AttemptLost)}
        (chosen,) = words.of(ev.AttemptChosen)
        assert ("task-1.1-attempt-3", "green\n") == (
            chosen.filename,
            (words.git.root / "a.txt").read_text(),
        )
        assert ["Begin", "Write a.txt", "Write b.txt"] == sorted(words.subjects())
        assert Counter({"a": 3, "b": 1, "planning": 1, "reviewing": 3}) == Counter(
            words.agent.sessions
        )
        slots = {one.filename: one.slot for one in words.of(ev.WatchProcessingItem)}
        hand = slots["task-1.1"]
        beside = [slots[f"task-1.1-attempt-{n}"] for n in range(1, 4)]
        assert [41 + 8 * (hand - 1) + n for n in range(3)] == beside
        assert 2 == sum("It is one task of a plan" in review for review in words.agent.reviews)
        clone = tmp_path / "project.cuggino-slots" / "slot-1"
        refs = words.git.git("for-each-ref", "--format=%(refname)", "refs/cuggino", cwd=clone)
        assert "refs/cuggino/attempts/task-1.1-attempt-1/1" in refs
        assert "" == words.git.git("status", "--short")

    def test_a_list_goes_through_the_gate(self, tmp_path: Path) -> None:
        """A plan with attempts is never done by one agent after the other in one clone."""
        tasks = {name: writes(f"{name}.txt") for name in "ab"}
        fields = {"a": "attempts: 2", "b": "attempts: many"}
        words = HandsProject(tmp_path, TaskAgent(tasks, fields))
        words.run()
        (started,) = words.of(ev.HandsStarted)
        assert 1 == started.hands
        assert ("task-1.2: `attempts: many` is ignored: it has no number",) == started.notes
        assert 2 == sum("-attempt-" in it.filename for it in words.of(ev.WatchProcessingItem))
        assert isinstance(words.events[-1], ev.LoopApproved)
        assert ["Begin", "Write a.txt", "Write b.txt"] == sorted(words.subjects())

    @pytest.mark.real_agent
    def test_attempts_at_a_plan_are_those_of_its_tasks(self, tmp_path: Path) -> None:
        """Each task has the configured number, and the run itself is one, which pushes once."""
        remote = tmp_path / "remote.git"
        tasks = {name: writes(f"{name}.txt") for name in "ab"}
        words = project(tmp_path, tasks, attempts=2, push="origin/main")
        words.git.git("init", "--quiet", "--bare", str(remote))
        words.git.git("remote", "add", "origin", str(remote))
        words.run()
        assert isinstance(words.events[-1], ev.LoopApproved)
        assert 2 == len(words.of(ev.AttemptChosen))
        assert 1 == len(words.of(ev.PushPerformed))
        assert 1 == words.agent.sessions.count("planning")
        (journal,) = list_journals(words.runtime.workspace.journal)
        state = RunState.of(read_journal(journal).entries)
        assert (2, ()) == (state.hands, state.items)


def test_what_hands_need() -> None:
    """Without a gate nothing could land."""
    with pytest.raises(ValueError, match='more than one hand requires "commit": true and a "check'):
        Config(hands=2)
    options: dict[str, Any] = {
        "cwd": Path(),
        "focus": "x",
        "hands": 2,
        "commit": True,
        "check_command": "true",
    }
    with pytest.raises(ValueError, match="requires a single hand"):
        LoopRunOptions(**options, slow=True)


def test_a_detached_head(tmp_path: Path) -> None:
    """Nothing begins that could not land."""
    words = project(tmp_path, {"a": writes("a.txt"), "b": writes("b.txt")})
    words.git.git("checkout", "-q", "--detach")
    with pytest.raises(ConfigError, match="HEAD is detached"):
        words.run()
    assert [] == words.agent.sessions


@pytest.mark.real_agent
def test_a_run_is_undone_in_the_users_tree(tmp_path: Path) -> None:
    """Its files are as they were before it."""
    words = project(tmp_path, {"a": writes("a.txt"), "b": writes("b.txt")}, whole=True)
    words.run()
    runtime = words.runtime
    plan = cuggino.run(runtime.undo_plan())
    assert plan is not None
    cuggino.run(runtime.undo(plan))
    assert not (words.git.root / "a.txt").exists()


def test_a_person_approves_before_the_branch_moves(tmp_path: Path) -> None:
    """Rejected work is planned again, and no task asks on its own."""
    words = project(tmp_path, {"a": writes("a.txt"), "b": writes("b.txt")})
    words.config = words.config.model_copy(
        update={"approve": ["landing"], "approve_within": "0s", "approve_else": "reject"}
    )
    words.run()
    last = words.events[-1]
    assert isinstance(last, ev.LoopStalled)
    assert "approval" == last.reason
    assert 1 == len(words.of(ev.WaitingStarted))
    assert ["Begin"] == words.subjects()


def test_a_loop_without_hands_refuses_them(tmp_path: Path) -> None:
    """The plain service does not pass them over in silence."""
    words = project(tmp_path, {"a": writes("a.txt")})
    runtime = words.runtime
    with pytest.raises(ConfigError, match="several hands need `HandsService`"):
        cuggino.run(LoopService(runtime.services).run(runtime.loop_options(focus="x")))
