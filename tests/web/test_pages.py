"""The pages as text: what a run's page sends while entries come."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cuggino import events as ev
from cuggino.storage.journal import Entry, JournalTail
from cuggino.web import pages
from cuggino.web.fragment import Fragment
from cuggino.web.site import Site
from tests.web.journals import Writer

AT = datetime(2026, 11, 23, 5, tzinfo=UTC)


class Run:
    """A run at work, and the fragments that its entries lead to."""

    def __init__(self, folder: Path) -> None:
        self.site = Site("/x", [folder])
        self.fold = pages.run_fold(self.site, self.site.places[0], "run-1")
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
    assert "/x/w/" in html
    assert "/r/run-1/commit/abc1234" in html


def test_the_usual_end(run: Run) -> None:
    """The page names the usual duration and end while the run works."""
    assert "usually" not in run.page()
    made = ev.Forecast(loop="run", runs=3, duration=60, worst_duration=90)
    (html,) = run.changes(made).of("head")
    assert "usually takes 1:00, until " in html
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


def test_messages_without_a_site() -> None:
    """The page of a refused visitor has no link into the site."""
    text = pages.message_page(None, title="Not signed in", text="<b>")
    assert "&lt;b&gt;" in text
    assert "/x" not in text
    assert "<script" not in text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (7.4, "0:07"), (2285, "38:05"), (11_520, "3 h 12 min")]
)
def test_span(seconds: float, text: str) -> None:
    """Durations are short."""
    assert text == pages.span(seconds)


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
