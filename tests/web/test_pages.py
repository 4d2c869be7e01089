"""The pages as text: what a run's page sends while entries come."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import pytest

from cuggino import events as ev
from cuggino.runs import RunState
from cuggino.storage.journal import Entry, JournalTail
from cuggino.web import pages
from cuggino.web.board import Board, Card, Cost, Ended, Question, Working
from cuggino.web.fragment import Fragment
from cuggino.web.site import Site
from tests.web.journals import Writer

AT = datetime(2026, 11, 23, 5, tzinfo=UTC)


class Run:
    """A run at work, and the fragments that its entries lead to."""

    def __init__(self, folder: Path) -> None:
        self.site = Site("/x", [folder])
        self.fold = pages.RunFold(self.site.places[0], "run-1")
        self.fold.running = True
        self.seq = 0
        self.add(ev.RunStarted(run_id="run-1", kind="run", command="c", focus="# Login"))

    def add(self, *events: ev.Event, stage: str | None = None) -> None:
        for event in events:
            self.seq += 1
            at = AT + timedelta(seconds=self.seq)
            self.fold.add(Entry(seq=self.seq, at=at, stage=stage, event=event))

    def page(self) -> str:
        return pages.run_page(self.site, self.fold, seq=self.seq)

    def changes(self, *events: ev.Event, stage: str | None = None, slow: bool = False) -> Changes:
        """Add events, and return the fragments by their targets."""
        since = self.seq
        self.add(*events, stage=stage)
        return Changes(pages.run_fragments(self.site, self.fold, since, slow=slow))


def _at_work(kind: Literal["run", "watch"], item: str = "") -> Working:
    return Working(run_id="r", title="T", activity=RunState(kind=kind, item=item))


class Changes:
    def __init__(self, fragments: list[Fragment]) -> None:
        self.fragments = fragments

    def of(self, to: str, how: str = "replace") -> list[str]:
        return [part.html for part in self.fragments if (part.to, part.how) == (to, how)]

    @property
    def targets(self) -> set[str]:
        return {part.to for part in self.fragments}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run in its first implementing stage."""
    made = Run(tmp_path)
    made.add(ev.ImplementingStart(iteration=1))
    made.add(ev.StageStarted(name="implementing"), stage="implementing#1")
    return made


def test_page_of_a_long_journal(run: Run, tmp_path: Path) -> None:
    """The page of a long journal lacks old messages, but no plan and no check."""
    writer = Writer(tmp_path / "long")
    writer.add(ev.PlanWritten(iteration=1, text="# Plan\n\n### Task 1: Session cookie\n"))
    writer.add(
        ev.CheckCommandOutput(iteration=1, exit_code=3, output="one failed", truncated=False)
    )
    for number in range(200):
        writer.add(ev.Thinking(text=f"thought {number} " + "x" * 3000))
    tail = JournalTail(writer.path, spared=pages.BULK, long=100_000)
    entries = tail.read()
    writer.end()
    assert 50 < sum(isinstance(entry.event, ev.Thinking) for entry in entries) < 150
    run.add(*(entry.event for entry in entries[1:]))
    text = run.page()
    assert "Session cookie" in text
    assert "one failed" in text


def test_rows_are_appended_and_results_put_in(run: Run) -> None:
    """A new row is appended once; the result of a known one replaces it."""
    call = ev.ToolCall(name="Bash", id="1", input={"command": "make"})
    run.add(ev.AgentMessage(text="before"), call, stage="implementing#1")
    text = run.page()
    assert "before" in text
    assert 'id="row-0-2"' in text
    result = ev.ToolResult(name="1", output="made it", is_error=False)
    first = run.changes(result, ev.AgentMessage(text="after"), stage="implementing#1")
    assert ["made it" in html for html in first.of("row-0-2", "outer")] == [True]
    assert ["after" in html for html in first.of("s0", "append")] == [True]
    assert [] == run.changes(stage="implementing#1").of("s0", "append")


def test_a_new_stage(run: Run) -> None:
    """A stage that begins is appended unfolded, with its rows; the line of the last one changes."""
    changes = run.changes(ev.StageFinished(outcome={"_tag": "Done"}), stage="implementing#1")
    assert ["done" in html for html in changes.of("line-0")] == [True]
    begun = ev.StageStarted(name="reviewing"), ev.AgentMessage(text="I look.")
    (html,) = run.changes(*begun, stage="reviewing#2").of("stages", "append")
    assert 'id="stage-1"' in html
    assert " open data-loaded" in html
    assert "I look." in html


def test_slow_parts_wait(run: Run) -> None:
    """Charts and lists are drawn only when it is their time; nothing is forgotten until then."""
    run.page()
    fast = run.changes(ev.StageFinished(outcome={"_tag": "Done"}), stage="implementing#1")
    assert "p-timeline" not in fast.targets
    slow = run.changes(slow=True)
    assert "p-timeline" in slow.targets
    assert "p-timeline" not in run.changes(slow=True).targets


def test_plan_and_commits_come_at_once(run: Run) -> None:
    """The plan is there as soon as it is written, a commit as soon as it is made."""
    plan = ev.PlanWritten(iteration=1, text="# Plan\n\n## Task 1: The form\n")
    assert ["The form" in html for html in run.changes(plan).of("p-plan")] == [True]
    commit = ev.CommitPerformed(iteration=1, commit_hash="abc1234", message="Add it")
    (html,) = run.changes(commit).of("p-commits")
    assert "/x/p/" in html
    assert "/runs/run-1/commit/abc1234" in html


def test_the_usual_end(run: Run) -> None:
    """The page names the usual duration and end while the run works."""
    assert "usually" not in run.page()
    made = ev.Forecast(loop="run", runs=3, duration=60, worst_duration=90)
    (html,) = run.changes(made).of("head")
    assert "usually takes 1 m, until " in html
    run.fold.running = False
    (html,) = run.changes(ev.RunEnded(state="approved")).of("head")
    assert "usually" not in html


def test_the_end(run: Run) -> None:
    """A run that has ended has no buttons and no running tool."""
    assert "Stop after stage" in run.page()
    run.fold.running = False
    changes = run.changes(ev.RunEnded(state="approved"), slow=True)
    assert [""] == changes.of("acts") == changes.of("now")
    assert ["approved" in html for html in changes.of("head")] == [True]
    assert "Message to the agent" not in run.page()


@pytest.mark.parametrize(
    ("boards", "text"),
    [
        ([Board()], ""),
        ([Board(working=(_at_work("run"), _at_work("run")))], "2 runs"),
        ([Board(working=(_at_work("watch"),))], "1 watch"),
        ([Board(working=(_at_work("watch", item="1.md"),))], "1 watch with 1 item"),
        ([Board(watch=RunState(hands=2), working=(_at_work("watch", item="t"),))], "1 run"),
        (
            [
                Board(watch=RunState(slots=3), working=(_at_work("watch", item="1.md"),) * 3),
                Board(watch=RunState(slots=3)),
                Board(working=(_at_work("run"),)),
            ],
            "2 watches with 3 items, 1 run",
        ),
    ],
)
def test_what_is_at_work(tmp_path: Path, boards: list[Board], text: str) -> None:
    """The header counts watches with their items, and runs."""
    place = Site("/x", [tmp_path]).places[0]
    assert text == pages.Overview(tuple((place, board) for board in boards)).at_work


def _overview(folder: Path, board: Board) -> str:
    site = Site("/x", [folder])
    return pages.overview_page(site, pages.Overview(((site.places[0], board),)), seq=0)


def test_first_steps(tmp_path: Path) -> None:
    """A project without items and runs shows what to do, with the form for an item."""
    new = _overview(tmp_path, Board(specs="docs/specs"))
    assert "<code>docs/specs/</code>" in new
    assert "<code>cuggino watch</code>" in new
    assert re.search('<details class="card add" id="[^"]*" open>', new)
    assert "Last 24 hours" not in new
    assert 'class="board"' not in new
    old = _overview(tmp_path, Board(has_runs=True))
    assert "Last 24 hours" in old
    assert not re.search('<details class="card add" id="[^"]*" open>', old)


def test_end_of_the_last_run(tmp_path: Path) -> None:
    """Where nothing runs, the overview says how the last run ended and how to start again."""
    ended = Ended("r1", "Add `export`", "budget", AT, "all is spent", "cuggino watch")
    text = _overview(tmp_path, Board(has_runs=True, last=ended))
    assert "Add <code>export</code></a> ended at" in text
    assert "budget spent</span> all is spent" in text
    assert "<code>cuggino watch</code>" in text


def test_questions_on_the_overview(tmp_path: Path) -> None:
    """A short question is whole and has its form; of a long one the beginning is shown."""
    short = Question(kind="spec-issue", name="1.md", title="A?", text="# A?\n\nshort")
    text = _overview(tmp_path, Board(waiting=(short,)))
    assert 'class="prose"><p>short' in text
    assert '<textarea id="answer-' in text
    text = _overview(tmp_path, Board(waiting=(replace(short, text="line\n\n" * 20),)))
    assert 'class="prose clamp"' in text
    assert '<textarea id="answer-' not in text


def test_reason_of_a_parked_item_stands_once(tmp_path: Path) -> None:
    """What waits for the user has the reason, and the card of the item has not."""
    card = Card(name="1.md", title="A", state="parked", note="it crashed")
    waits = Question(kind="parked", name="1.md", title="A", text="it crashed")
    text = _overview(tmp_path, Board(cards=(card,), waiting=(waits,)))
    assert 1 == text.count("it crashed")


def test_cost_since_midnight_only_if_it_differs(tmp_path: Path) -> None:
    """The cost of today is left out if it is that of the last 24 hours."""
    one, two = Cost(1.0), Cost(2.0)
    assert "Since midnight" in _overview(
        tmp_path, Board(has_runs=True, cost_today=one, cost_lately=two)
    )
    assert "Since midnight" not in _overview(
        tmp_path, Board(has_runs=True, cost_today=two, cost_lately=two)
    )


def test_folder_below_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project in the home folder is named from there."""
    (tmp_path / "code" / "shop").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path))
    place = Site("/x", [tmp_path / "code" / "shop"]).places[0]
    assert "~/code/shop" == place.shown
    monkeypatch.setenv("HOME", str(tmp_path / "elsewhere"))
    assert str(tmp_path / "code" / "shop") == place.shown


def test_messages_without_a_site() -> None:
    """The page of a refused visitor has no link into the site."""
    text = pages.message_page(None, title="Not signed in", text="<b>")
    assert "&lt;b&gt;" in text
    assert "/x" not in text
    assert "<script" not in text


def test_usage_windows(run: Run) -> None:
    """A running page shows the windows that are not reset yet."""
    now = datetime.now(UTC)
    run.add(
        *(
            ev.QuotaUsed(window=window, used=0.62, agent="claude", resets_at=resets_at)
            for window, resets_at in (
                ("five_hour", now + timedelta(hours=1)),
                ("seven_day", now - timedelta(hours=1)),
            )
        )
    )
    page = run.page()
    assert "claude: five_hour 62 % used, resets" in page
    assert "seven_day" not in page
