"""Several attempts at the same work, with real git, in virtual time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, just, never

from cuggino import events as ev
from cuggino.agents.base import LlmAgent
from cuggino.config import AttemptChoice, Config
from cuggino.domain import Decision
from cuggino.errors import AgentFailed, LoopError, QuotaExceeded, RunNotResumable
from cuggino.git import Git
from cuggino.loops import AttemptsService, WatchService
from cuggino.loops.attempts import Race
from cuggino.operators.supervision import QuotaGate
from cuggino.report import NightReport, load_report
from cuggino.runs import RecordedRun, Runs, RunState
from cuggino.runs.tails import RunTail
from cuggino.stages import chosen_attempt
from cuggino.storage import Workspace, decide, find_run
from cuggino.storage.journal import read_journal
from cuggino.testing import AgentRun, Do, InMemoryAgent, Say, VirtualRuntime, Wait, Write
from cuggino.testing.story import Story
from tests.git_project import isolate_git, without_comparisons

PLANNED = [Say("<PLAN_COMPLETE>One task</PLAN_COMPLETE>")]
TASK = "# Plan\n\n## Task 1\n"
PLAN = AgentRun(PLANNED, plan=TASK)
APPROVE = [Say("<APPROVED>As it should be</APPROVED>")]
_BEGUN, _COMPLETED = ev.WatchProcessingItem, ev.WatchItemCompleted
SPENT = ev.SessionEnded(outcome="completed", cost_usd=0.5)


@pytest.fixture(autouse=True)
def isolated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    isolate_git(monkeypatch, tmp_path / "home")


def worker(*steps: Any, times: int = 1) -> InMemoryAgent:
    """Return an agent that takes these steps when it implements, and approves of its work."""
    return InMemoryAgent(
        {
            "planning": [PLAN] * times,
            "implementing": [[*steps, Say("<DONE>Do it</DONE>")]] * times,
            "reviewing": [APPROVE] * times,
        }
    )


def honest(after: str, word: str = "hello") -> InMemoryAgent:
    return worker(Wait(after), Write("hello.txt", f"{word} hello\n"))


def liar(times: int = 1) -> InMemoryAgent:
    """Return an agent that says that it is done, although the check fails."""
    return worker(Wait("1m"), Write("other.txt", "x"), times=times)


def crasher() -> InMemoryAgent:
    return InMemoryAgent({"planning": [[AgentFailed("it crashed", reason="crash")]] * 9})


class Attempts:
    """A project and the agents of its attempts, by their hints; a `whole` one has snapshots."""

    def __init__(
        self, place: Path, agents: Mapping[str, LlmAgent], *, whole: bool = False, **config: Any
    ) -> None:
        self.agents = agents
        settings: dict[str, Any] = {
            "commit": True,
            "sandbox": "off",
            "check_command": "grep hello hello.txt",
            "max_retries": 0,
            "max_iterations": 1,
            "attempts": [AttemptChoice(hint=hint) for hint in agents if hint != "judge"],
        }
        judge = agents.get("judge", InMemoryAgent({}))
        config = {**settings, **config}
        self.cousin = VirtualRuntime(place / "p", judge, config=Config(**config), git=True)
        if not whole:
            self.cousin.runtime = without_comparisons(self.cousin.runtime)

    @property
    def service(self) -> AttemptsService:
        services = replace(self.cousin.runtime.services, gate=QuotaGate())  # as in a new process
        return AttemptsService(services, agent_of=lambda choice: self.agents[choice.hint or ""])

    def run(self, *, resume: bool = False, until: str | None = None) -> Story[Any]:
        options = self.cousin.runtime.loop_options(focus="Say hello")
        journal = find_run(self.workspace.journal, None, kind="run") if resume else None
        stream: Observable[Any] = self.service.run(options, resume=journal)
        return self.cousin.play(stream, until=until) if until else self.cousin.play(stream)

    @property
    def workspace(self) -> Workspace:
        return Workspace(self.cousin.folder)

    def decides(self, at: str, decision: Decision) -> None:
        """Let a person decide at this time on the only thing that waits."""

        def act() -> None:
            (issue,) = [one for one in self.workspace.issues() if one.is_approval]
            approves = decision.outcome == "approved"
            decide(self.workspace, issue, approves=approves, text=decision.text)

        self.cousin.at(at, act)

    def refs(self) -> list[str]:
        listed = self.cousin.git("for-each-ref", "--format=%(refname)", "refs/cuggino")
        kinds = ("attempts", "candidates", "kept")
        return [ref for ref in listed.split() if ref.split("/")[2] in kinds]

    def subjects(self) -> list[str]:
        return self.cousin.git("log", "--first-parent", "--format=%s").splitlines()


def lost(story: Story[Any]) -> dict[str, str]:
    return {one.filename: one.why for one in story.of(ev.AttemptLost)}


def test_the_first_that_passes_lands(tmp_path: Path) -> None:
    """The honest one lands; a liar has lost, a crasher too, and a slow one ends that instant."""
    lie = worker(Wait("1m"), SPENT, Write("other.txt", "x"))
    good = worker(Wait("10m"), SPENT, Write("hello.txt", "hello hello\n"))
    project = Attempts(
        tmp_path,
        {"lie": lie, "crash": crasher(), "honest": good, "slow": honest("14m")},
        whole=True,
    )
    story = project.run().check()
    expected = {"attempt-1": "not-approved", "attempt-2": "failed", "attempt-4": "overtaken"}
    assert expected == lost(story), story
    assert "attempt-3" == story.one(ev.AttemptChosen).filename
    approved = next(e for e in story.of(ev.LoopApproved) if e.item == "attempt-3")
    assert approved.checked is None
    assert {600.0} == {*story.times(ev.AttemptChosen), *story.times(ev.WatchLanded)}
    assert 600.0 == story.ended_at
    last = story.last
    assert isinstance(last, ev.LoopApproved)
    assert (None, True) == (last.item, last.checked)
    assert ["Say hello", "Begin"] == project.subjects()
    assert "hello hello\n" == project.cousin.read("hello.txt")
    assert "" == project.cousin.git("status", "--short", "--untracked-files=no")
    assert ["refs/cuggino/attempts/attempt-1/1"] == project.refs()
    assert_recorded(project, story)
    assert_cleaned(project)


def assert_recorded(project: Attempts, story: Story[Any]) -> None:
    """The run has one journal, a row for each attempt, and the costs of all, once."""
    names = [f"attempt-{n}" for n in range(1, 5)]
    assert {*names} == {e.item for e in story.events if isinstance(e, ev.IterationStart)}
    runs = [run for run in Runs(project.cousin.folder).all() if isinstance(run, RecordedRun)]
    found = [run for run in runs if run.started.item is None]
    assert [1.0] == [run.digest.totals.cost_usd for run in found]
    assert [None] == [run.digest.loop for run in found]
    state = RunState.of(found[0].journal.entries)
    rows = {one.name: (one.state, one.slot) for one in state.watched.items.values()}
    lost_ones = {names[n - 1]: ("lost", n) for n in (1, 2, 4)}
    assert {**lost_ones, "attempt-3": ("landed", 3)} == rows
    assert ("run", "approved") == (state.kind, state.outcome)


def assert_cleaned(project: Attempts) -> None:
    """`cuggino slots clean` removes slots and refs of attempts that have lost."""
    listed = project.cousin.play(project.cousin.runtime.slots()).events[0]
    assert [("attempt", "attempt-1", True)] == [
        (ref.kind, ref.item, ref.is_removable) for ref in listed.refs
    ]
    left = project.cousin.play(project.cousin.runtime.clean_slots()).events[0].left
    assert ((), ()) == (left.refs, left.folders)
    assert [] == project.refs()


def test_the_best_by_a_judge(tmp_path: Path) -> None:
    """All that pass are compared; the judge sees diffs and checks, and no name."""
    asked: list[str] = []

    def choose(options: Any) -> None:
        asked.append(options.system_prompt or "")

    judge = InMemoryAgent(
        {"reviewing": [[Do(choose), Say("I compare.\n\n<APPROVED>2: it says more</APPROVED>")]]}
    )
    agents = {"a": honest("1m", "first"), "b": honest("2m", "second"), "lie": liar()}
    project = Attempts(tmp_path, {**agents, "judge": judge}, choose="best")
    story = project.run().check()
    chosen = story.one(ev.AttemptChosen)
    assert (2, "it says more") == (chosen.passed, chosen.reason)
    second = asked[0].partition("## Attempt 2")[2]
    word = "first" if "+first hello" in second else "second"
    assert f"{word} hello\n" == project.cousin.read("hello.txt")
    assert "+first hello" in asked[0]
    assert "+second hello" in asked[0]
    assert "The check command passes." in asked[0]
    assert not [name for name in ("attempt-", "slot-", "other.txt") if name in asked[0]]
    other = "attempt-2" if word == "first" else "attempt-1"
    assert {"attempt-3": "not-approved", other: "not-chosen"} == lost(story)


def test_a_judge_that_names_none(tmp_path: Path) -> None:
    """Without a choice, the first that passed lands."""
    judge = InMemoryAgent({"reviewing": [APPROVE, APPROVE]})
    agents = {"a": honest("2m", "a"), "b": honest("1m", "b"), "judge": judge}
    story = Attempts(tmp_path, agents, choose="best").run().check()
    chosen = story.one(ev.AttemptChosen)
    assert ("attempt-2", 2) == (chosen.filename, chosen.passed)
    assert "the first that passed" in chosen.reason


def test_another_agent_has_its_own_model(tmp_path: Path) -> None:
    """The configured model is that of the configured agent, not of an attempt's other one."""
    agents = {"a": honest("2m"), "b": liar(), "c": liar()}
    choices = [
        AttemptChoice(hint="a"),
        AttemptChoice(hint="b", agent="codex"),
        AttemptChoice(hint="c", agent="codex", model="gpt"),
    ]
    Attempts(tmp_path, agents, attempts=choices, model="opus").run(until="10s")
    assert ["opus", None, "gpt"] == [agent.spawned[0].model for agent in agents.values()]


def test_a_second_round_knows_the_first(tmp_path: Path) -> None:
    """When none passes, new attempts begin, which are told what was tried and why it failed."""
    told: list[str] = []

    def hear(options: Any) -> None:
        told.append(options.system_prompt or "")

    second = InMemoryAgent(
        {
            "planning": [PLAN, AgentRun([Do(hear), *PLANNED], plan=TASK)],
            "implementing": [
                [Write("wrong.txt", "x"), Say("<DONE>Write something else</DONE>")],
                [Write("hello.txt", "hello"), Say("<DONE>Say it</DONE>")],
            ],
            "reviewing": [APPROVE, APPROVE],
        }
    )
    project = Attempts(tmp_path, {"a": second, "b": crasher()})
    story = project.run().check()
    assert ["attempt-1", "attempt-2", "attempt-4"] == sorted(lost(story))
    assert "attempt-3" == story.one(ev.AttemptChosen).filename
    assert "Write something else" in told[0]
    assert "not approved within 1 iteration" in told[0]
    assert not (project.cousin.folder / "wrong.txt").exists()


def test_all_of_two_rounds_lose(tmp_path: Path) -> None:
    """The result is that of the last attempt, nothing lands, and the work is kept."""
    project = Attempts(tmp_path, {"a": crasher(), "b": liar(2)})
    story = project.run().check()
    assert isinstance(story.last, ev.LoopMaxIterations)
    assert 4 == len(story.of(ev.AttemptLost))
    assert ["Begin"] == project.subjects()
    assert [f"refs/cuggino/attempts/attempt-{n}/1" for n in (2, 4)] == project.refs()
    reasons = [one.reason for one in story.of(ev.AttemptLost) if one.why == "not-approved"]
    assert [True, True] == ["the check fails: grep" in reason for reason in reasons], reasons


def test_all_fail(tmp_path: Path) -> None:
    """The error of the last one is the error of the run, without a second round."""
    project = Attempts(tmp_path, {"a": crasher(), "b": crasher()})
    story = project.run()
    assert isinstance(story.error, LoopError)
    assert {"attempt-1": "failed", "attempt-2": "failed"} == lost(story)


def test_a_usage_limit_loses_nothing(tmp_path: Path) -> None:
    """An attempt that meets a limit goes on when the run is resumed, in its slot."""
    limited = InMemoryAgent(
        {
            "planning": [PLAN],
            "implementing": [
                [Write("hello.txt", "hello"), Wait("5m"), QuotaExceeded("You've hit your limit")],
                [Say("<DONE>Do it</DONE>")],
            ],
            "reviewing": [APPROVE],
        }
    )
    project = Attempts(tmp_path, {"limited": limited, "crash": crasher()})
    before = project.run()
    assert 12 == getattr(before.error, "code", 0), before
    assert {"attempt-2": "failed"} == lost(before)
    after = project.run(resume=True).check()
    assert {} == lost(after)
    assert ["planning", "implementing", "implementing", "reviewing"] == [
        one.role for one in limited.spawned
    ]
    assert isinstance(after.last, ev.LoopApproved)
    assert ["Say hello", "Begin"] == project.subjects()


def test_a_killed_run_pays_for_no_attempt_again(tmp_path: Path) -> None:
    """A resumed run goes on with what was at work; those that have ended stay ended."""
    agents = {"lie": liar(), "crash": crasher(), "honest": honest("10m")}
    project = Attempts(tmp_path, agents)
    before = project.run(until="5m")
    assert {"attempt-1": "not-approved", "attempt-2": "failed"} == lost(before)
    whole = find_run(project.workspace.journal, None, kind="run").run_id
    agent = agents["honest"]
    again = InMemoryAgent(
        {
            "implementing": [[Write("hello.txt", "hello"), Say("<DONE>Do it</DONE>")]],
            "reviewing": [APPROVE],
        }
    )
    project.agents = {"lie": InMemoryAgent({}), "crash": InMemoryAgent({}), "honest": again}
    assert 2 == len(agent.spawned)
    after = project.run(resume=True).check()
    assert ["implementing", "reviewing"] == [one.role for one in again.spawned]
    assert {} == lost(after)
    attempts = [run for run in Runs(project.cousin.folder).all() if run.path.stem != whole]
    assert 3 == len(attempts)
    with pytest.raises(RunNotResumable, match=f"is attempt-. of run {whole}, which resumes it"):
        find_run(project.workspace.journal, attempts[0].path.stem, kind="run")
    assert isinstance(after.last, ev.LoopApproved)
    assert ["Say hello", "Begin"] == project.subjects()


def test_the_branch_has_moved_meanwhile(tmp_path: Path) -> None:
    """A conflict sends the chosen one back: it is resolved in its slot, and lands then."""
    resolver = InMemoryAgent(
        {
            "planning": [PLAN],
            "implementing": [
                [Wait("10m"), Write("hello.txt", "hello\n"), Say("<DONE>Do it</DONE>")],
                [Write("hello.txt", "hello, both\n"), Say("<DONE>Both</DONE>")],
            ],
            "reviewing": [APPROVE, APPROVE],
        }
    )
    project = Attempts(tmp_path, {"a": resolver, "b": crasher()})

    def commit() -> None:
        project.cousin.write("hello.txt", "the user's\n")
        project.cousin.git("add", "hello.txt")
        project.cousin.git("commit", "-qm", "Mine")

    project.cousin.at("5m", commit)
    story = project.run().check()
    assert "conflict" == story.one(ev.WatchSentBack).reason
    assert "hello, both\n" == project.cousin.read("hello.txt")
    assert isinstance(story.last, ev.LoopApproved)


def twice(after: str) -> InMemoryAgent:
    """Return an agent whose work is rejected by a person, so that it does more."""
    return InMemoryAgent(
        {
            "planning": [PLAN] * 2,
            "implementing": [
                [Wait(after), Write("hello.txt", "hello\n"), Say("<DONE>Do it</DONE>")],
                [Write("more.txt", "more"), Say("<DONE>Do more</DONE>")],
            ],
            "reviewing": [APPROVE] * 2,
        }
    )


class TestApproval:
    """With `"approve": ["landing"]` a person is asked once, for what lands."""

    def test_it_is_rejected_and_approved(self, tmp_path: Path) -> None:
        """The chosen attempt gets the reason, and lands once its work is approved.

        A resumed run asks nothing again, and an answer given in between counts.
        """
        agents = {"crash": crasher(), "a": twice("5m"), "b": honest("14m")}
        project = Attempts(tmp_path, agents, approve=["landing"])
        project.decides("1h", Decision("rejected", "It says too little."))
        story = project.run(until="2h")
        assert [300.0, 3600.0] == [round(at, -2) for at in story.times(ev.WaitingStarted)]
        back = story.one(ev.WatchSentBack)
        assert ("review", "It says too little.") == (back.reason, back.output)
        prompt = agents["a"].sessions("planning")[1].system_prompt or ""
        assert "It says too little." in prompt
        assert ["attempt-1", "attempt-3"] == sorted(lost(story))
        assert ["Begin"] == project.subjects()
        (issue,) = [one for one in project.workspace.issues() if one.is_approval]
        assert "Approve the work before it lands? (Say hello)" in issue.path.read_text()
        decide(project.workspace, issue, approves=True)
        project.agents = dict.fromkeys(agents, InMemoryAgent({}))
        story = project.run(resume=True).check()
        assert isinstance(story.last, ev.LoopApproved)
        assert [] == [one for one in project.workspace.issues() if one.is_approval]
        assert "more" == project.cousin.read("more.txt")
        assert ["Say hello", "Begin"] == project.subjects()

    def test_each_plan_names_its_attempt(self, tmp_path: Path) -> None:
        """With `plan`, a person sees which attempt a question is about."""
        project = Attempts(tmp_path, {"a": honest("5m"), "b": liar()}, approve=["plan"])
        project.run(until="30m")
        texts = [one.path.read_text() for one in project.workspace.issues() if one.is_approval]
        asked = "Approve the plan? ({})".format
        assert [asked("attempt-1"), asked("attempt-2")] == sorted(
            next(line.strip("# ") for line in text.splitlines() if "Approve" in line)
            for text in texts
        )

    def test_nobody_decides(self, tmp_path: Path) -> None:
        """After the deadline the run ends without a second round, and the work is kept."""
        agents = {"a": honest("5m"), "b": crasher()}
        project = Attempts(tmp_path, agents, approve=["landing"], approve_within="8h")
        story = project.run().check()
        assert isinstance(story.last, ev.LoopStalled)
        assert ("approval", None) == (story.last.reason, story.last.item)
        assert {"attempt-1", "attempt-2"} == set(lost(story))
        assert "refs/cuggino/attempts/attempt-1/1" in project.refs()
        assert ["Begin"] == project.subjects()


def test_an_item_of_the_backlog(tmp_path: Path) -> None:
    """Front matter asks for attempts at an item; the one that lands archives it."""
    agent = InMemoryAgent(
        {
            "planning": [PLAN] * 2,
            "implementing": [
                [SPENT, Write("wrong.txt", "x"), Wait("5m"), Say("<DONE>No</DONE>")],
                [SPENT, Write("hello.txt", "hello"), Wait("1m"), Say("<DONE>Yes</DONE>")],
            ],
            "reviewing": [[SPENT, *APPROVE]],
        }
    )
    project = Attempts(tmp_path, {"judge": agent}, attempts=1)
    text = "---\nattempts: 2\n---\n# Say hello\n"
    project.cousin.write(".cuggino/backlog/1.md", text)
    project.cousin.write(".cuggino/backlog/2.md", text.replace("2", "20"))
    story = project.cousin.watch(until="10m")
    assert "1.md" == story.one(ev.WatchItemCompleted).filename
    assert story.one(ev.AttemptChosen).filename.startswith("1.md-attempt-")
    assert ["overtaken"] == [*lost(story).values()]
    assert "attempts must be a number from 1 to 8, not 20" == story.one(ev.WatchItemHeld).reason
    assert "hello" == project.cousin.read("hello.txt")
    night = _night(project)
    rows = [(one.item.name, one.item.state, len(one.commits)) for one in night.items]
    assert [("1.md", "approved", 1), ("2.md", "held", 0)] == sorted(rows)
    assert 1.5 == night.cost_usd
    assert "good" == _tone(night)


def _night(project: Attempts) -> NightReport:
    night = load_report(project.cousin.folder)
    assert isinstance(night, NightReport)
    return night


def _tone(night: NightReport) -> str | None:
    """Return how good the proof of what has landed for `1.md` is."""
    proof = next(night.proof(one) for one in night.items if one.item.name == "1.md")
    return proof and proof.tone


class InSlots(Attempts):
    """A watch with two slots: `1.md` has the attempts, `2.md` has one."""

    def __init__(self, place: Path, agents: Mapping[str, LlmAgent], **config: Any) -> None:
        plain = worker(Wait("2m"), Write("plain.txt", "plain"), SPENT, times=2)
        check = "grep hello hello.txt || test -e plain.txt"
        settings = {"slots": 2, "check_command": check, **config}
        super().__init__(place, {"judge": plain, **agents}, **settings)
        self.cousin.write(".cuggino/backlog/1.md", "# Say hello\n")
        self.cousin.write(".cuggino/backlog/2.md", "---\nattempts: 1\n---\n# Be plain\n")

    def watch(self, until: str, **given: Any) -> Story[Any]:
        options = self.cousin.runtime.watch_options()
        service = WatchService(self.service.services, loop=self.service, **given)
        return self.cousin.play(service.run(options), until=until)

    def sends(self, at: str, command: ev.ControlEvent) -> None:
        self.cousin.at(at, lambda: self.cousin.runtime.send(command))

    def snapshots_of(self, slot: int) -> set[str]:
        """Return the stages before which the files of a slot were kept."""
        git = Git(cwd=Path(f"{self.cousin.folder}.cuggino-slots") / f"slot-{slot}")
        refs = git.now("for-each-ref", "--format=%(refname)", "refs/cuggino/snapshots").text
        return {ref.rpartition("/")[2] for ref in refs.splitlines()}

    @property
    def journal(self) -> Path:
        found = [run for run in Runs(self.cousin.folder).all() if isinstance(run, RecordedRun)]
        (watch,) = [run for run in found if run.started.kind == "watch"]
        return watch.path

    def state(self) -> RunState:
        return RunState.of(read_journal(self.journal).entries)


class Elsewhere:
    """A placement on other machines, where nothing is ever placed."""

    slots = 41
    news: Observable[Any] = never()

    def attach(self, _is_wanted: object) -> Observable[Sequence[Any]]:
        return just([])


class TestInSlots:
    """A watch with several slots: attempts at an item work beside its slot."""

    def test_both_items_land(self, tmp_path: Path) -> None:
        """The honest attempt and the plain item land through one gate; clones beside the slot.

        A message to the item reaches each attempt at work, and no other item.
        """
        lie = worker(Wait("1m"), SPENT, Write("other.txt", "x"))
        agents = {"lie": lie, "crash": crasher(), "honest": honest("10m"), "slow": honest("14m")}
        project = InSlots(tmp_path, agents, whole=True)
        project.sends("30s", ev.SteerAsked(text="Say it twice.", item="1.md"))
        story = project.watch("20m")
        assert ["1.md-attempt-1", "1.md-attempt-3"] == [one.item for one in story.of(ev.Steered)]
        assert ["2.md", "1.md"] == [one.filename for one in story.of(ev.WatchItemCompleted)], story
        assert ["2.md", "1.md"] == [one.filename for one in story.of(ev.WatchLanded)]
        assert "1.md-attempt-3" == story.one(ev.AttemptChosen).filename
        assert {
            "1.md-attempt-1": "not-approved",
            "1.md-attempt-2": "failed",
            "1.md-attempt-4": "overtaken",
        } == lost(story)
        assert [1, 2, 41, 42, 43, 44] == sorted(one.slot for one in story.of(_BEGUN))
        assert ("hello hello\n", "plain") == (
            project.cousin.read("hello.txt"),
            project.cousin.read("plain.txt"),
        )
        assert ["refs/cuggino/attempts/1.md-attempt-1/1"] == project.refs()
        assert "good" == _tone(_night(project))
        state = project.state()
        assert {"1.md", "2.md"} == set(state.watched.items)
        assert (2, 1.0) == (state.watched.slots, state.spent.cost_usd)
        events = [entry.event for entry in RunTail(project.journal).read()]
        costs = [one.cost_usd for one in events if isinstance(one, ev.SessionEnded)]
        assert 1.0 == sum(filter(None, costs))  # those of attempts once, from their own journals
        begun = [(one.item, one.slot) for one in events if isinstance(one, ev.WatchSlotPrepared)]
        assert len(begun) == len(set(begun)) == 6
        assert {"planning-1", "implementing-1"} == project.snapshots_of(2)
        listed = project.cousin.play(project.cousin.runtime.slots()).events[0]
        assert [1, 2, 41, 42, 43, 44] == [one.number for one in listed.folders if one.number]
        left = project.cousin.play(project.cousin.runtime.clean_slots()).events[0].left
        assert ((), ()) == (left.refs, left.folders)

    @pytest.mark.parametrize("at", ["5m", pytest.param("30s", marks=pytest.mark.real_agent)])
    def test_a_killed_watch_pays_for_no_attempt_again(self, tmp_path: Path, at: str) -> None:
        """The next watch goes on with the attempts at work; what has ended is not repeated."""
        agents = {"lie": liar(), "honest": honest("10m")}
        project = InSlots(tmp_path, agents)
        before = project.watch(at)
        implement: list[Any] = [Wait("1m"), Write("hello.txt", "hello"), Say("<DONE>Do it</DONE>")]
        project.agents = {"judge": project.agents["judge"]}
        for hint in ("lie", "honest"):
            again = InMemoryAgent({"implementing": [implement], "reviewing": [APPROVE]})
            project.agents[hint] = again
        after = project.watch("40m")
        done = [one.filename for story in (before, after) for one in story.of(_COMPLETED)]
        assert ["1.md", "2.md"] == sorted(done), after
        assert "hello" == project.cousin.read("hello.txt")
        ended = [one.filename for story in (before, after) for one in story.of(ev.AttemptLost)]
        assert len(ended) == len(set(ended))
        assert [] == [ref for ref in project.refs() if "attempts" not in ref]
        assert 1 == len(after.of(ev.AttemptChosen))

    def test_a_skipped_item(self, tmp_path: Path) -> None:
        """All attempts end with their item, which is parked; the other one lands."""
        project = InSlots(tmp_path, {"a": honest("10m"), "b": honest("14m")})
        project.sends("1m", ev.SkipAsked(item="1.md"))
        story = project.watch("30m")
        assert [60.0] == story.times(ev.WatchItemParked)
        assert "1.md" == story.one(ev.WatchItemParked).filename
        assert "2.md" == story.one(ev.WatchItemCompleted).filename
        assert [] == story.of(ev.AttemptChosen)

    def test_too_many_slots(self, tmp_path: Path) -> None:
        """Attempts have slots after the fortieth: more is refused, and an item is parked."""
        project = InSlots(tmp_path, {"a": honest("10m"), "b": honest("14m")})
        story = project.watch("10m", placement=Elsewhere())
        assert "require at most 40 slots" in str(story.error)
        project = InSlots(tmp_path / "item", {}, attempts=1)
        project.cousin.write(".cuggino/backlog/1.md", "---\nattempts: 2\n---\n# Say hello\n")
        (project.cousin.folder / ".cuggino/backlog/2.md").unlink()
        story = project.watch("10m", placement=Elsewhere())
        assert "require at most 40 slots" in story.one(ev.WatchItemParked).reason


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("2: it says more", (2, "it says more")),
        ("Attempt 3 - smaller", (3, "smaller")),
        ("#1", (1, "")),
        ("well,\n2. has a test", (2, "has a test")),
        ("4: too many", None),
        ("0", None),
        ("the second", None),
        ("", None),
    ],
)
def test_the_choice_of_a_judge(said: str, expected: tuple[int, str] | None) -> None:
    """The first line that begins with the number of an attempt counts."""
    assert expected == chosen_attempt(said, 3)


def test_the_state_is_a_fold_of_events() -> None:
    """What is chosen, sent back and lost follows from the events, in any process."""
    made = ev.WatchCandidate(filename="a", slot=1, commit="c", base="b", attempt=1)
    back = ev.WatchSentBack(filename="a", reason="check", returns=1)
    chosen = ev.AttemptChosen(filename="a", slot=1, commit="c")
    gone = ev.AttemptLost(filename="a", slot=1, why="failed", reason="x")
    race = Race.of([made.model_copy(update={"approved": False})])
    assert [] == list(race.waiting())
    race = Race.of([made, chosen, back])
    assert ("a", back, 1) == (race.chosen, race.sent_back, race.returns)
    again = race.after(made)
    assert (None, 1) == (again.sent_back, again.returns)
    assert ("", []) == (race.after(gone).chosen, list(race.after(gone).waiting()))
    landed = ev.WatchLanded(filename="a", commit="d", trunk_was="b")
    assert race.after(landed).has_landed
    assert not race.after(landed.model_copy(update={"filename": "z"})).has_landed
