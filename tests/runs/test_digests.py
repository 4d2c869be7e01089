"""Digests of journals: equal to their contents, kept, and read in parts."""

from __future__ import annotations

import itertools
import json
import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from cuggino import events as ev
from cuggino.errors import StorageError
from cuggino.events import (
    AgentMessage,
    Event,
    MessageDelta,
    PingEvent,
    RunContinued,
    RunEnded,
    RunStarted,
    event_types,
)
from cuggino.runs import DIGESTED, RunState, digests
from cuggino.runs.digests import DigestFold, digest_of, past_digests
from cuggino.storage.journal import Journal, RunPart, iter_entries, prune, read_journal
from tests.events.generated import EVENTS, events_of

AT = datetime(2026, 11, 22, 9, tzinfo=UTC)
STARTED = ev.RunStarted(run_id="0193-a", kind="run", command="cuggino run", focus="login")
STORY: list[ev.Event] = [
    ev.IterationStart(iteration=1, max_iterations=3),
    ev.PlanningStart(iteration=1),
    ev.StageStarted(name="planning"),
    ev.UsageUpdate(usage=ev.Usage(input_tokens=10)),
    ev.AgentMessage(text="words"),
    ev.SessionEnded(outcome="completed", cost_usd=0.25, usage=ev.Usage(input_tokens=20)),
    ev.StageFinished(outcome={"_tag": "Done", "content": "x"}),
    ev.CommitPerformed(iteration=1, commit_hash="abc1234", message="Add it"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / ".cuggino" / "journal"


def write(folder: Path, *more: ev.Event) -> Path:
    """Write a journal of the story, a second an entry."""
    journal = Journal.create(folder, STARTED, at=AT, sync=False, fold=DigestFold())
    for number, event in enumerate([*STORY, *more], 1):
        journal.append(event, at=AT + timedelta(seconds=number), stage="planning#1")
    journal.close()
    return journal.path


def kept(path: Path) -> Path:
    return path.parent.with_name("digests") / f"{path.stem}.json"


@pytest.mark.parametrize("ended", [(), (ev.RunEnded(state="quota", message="limit"),)])
def test_as_the_journal_says(folder: Path, ended: tuple[ev.Event, ...]) -> None:
    """The writer's digest, a reader's digest and the contents of the journal agree."""
    path = write(folder, *ended)
    written = kept(path).read_text()
    digest = digest_of(path)
    journal = read_journal(path)
    assert RunState.of(journal.entries).totals == digest.totals
    assert 0.25 == digest.totals.cost_usd
    assert (("abc1234", "Add it"),) == digest.totals.commits
    assert (STARTED, journal.ended) == (digest.started, digest.ended)
    assert (journal.state, journal.resumable) == (digest.state, digest.resumable)
    assert (AT, AT, journal.entries[-1].at) == (digest.began, digest.continued, digest.last)
    kept(path).unlink()
    assert digest == digest_of(path)
    assert written == kept(path).read_text()


@pytest.mark.parametrize("last", [ev.RunEnded(state="failed"), ev.AgentMessage(text="killed")])
def test_a_continued_run(folder: Path, last: ev.Event) -> None:
    """The next process adds to the totals, and its beginning is the latest."""
    path = write(folder, last)
    journal = Journal.open(path, sync=False, fold=DigestFold())
    later = AT + timedelta(hours=1)
    journal.append(ev.RunContinued(), at=later)
    journal.append(ev.RunEnded(state="approved"), at=later + timedelta(seconds=2))
    journal.close()
    digest = digest_of(path)
    assert (later, "approved") == (digest.continued, digest.state)
    assert RunState.of(read_journal(path).entries).totals == digest.totals
    assert 11.0 == digest.totals.duration, "9 seconds and 2"


def test_a_kept_digest_is_read_instead(folder: Path) -> None:
    """The journal itself is not read, however long it is."""
    path = write(folder, ev.RunEnded(state="approved"))
    digest, status = digest_of(path), path.stat()
    path.write_bytes(b"x" * status.st_size)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert digest == digest_of(path)


def test_a_journal_that_has_changed(folder: Path) -> None:
    """Another size or another time, and the journal is read again."""
    path = write(folder)
    before = digest_of(path)
    journal = Journal.open(path, sync=False, fold=DigestFold())
    journal.append(ev.RunEnded(state="stalled"), at=AT)
    assert ("unfinished", "stalled") == (before.state, digest_of(path).state)
    journal.close()
    os.utime(path, ns=(0, 1))
    path.write_bytes(b"x" * path.stat().st_size)
    with pytest.raises(StorageError, match="no complete line"):
        digest_of(path)


@pytest.mark.parametrize("content", ["", "{", "{}", '{"size": 1}', "\0"])
def test_a_broken_digest(folder: Path, content: str) -> None:
    """It counts as none, and is replaced."""
    path = write(folder)
    digest = digest_of(path)
    kept(path).write_text(content)
    assert digest == digest_of(path)
    assert digest.model_dump_json() == kept(path).read_text().strip()


def test_where_none_can_be_kept(folder: Path, tmp_path: Path) -> None:
    """Without a place for digests the journal is read each time."""
    path = write(folder)
    digest = digest_of(path)
    kept(path).unlink()
    shutil.rmtree(kept(path).parent)
    kept(path).parent.write_text("a file in its place")
    assert digest == digest_of(path)
    elsewhere = tmp_path / "copy.jsonl"
    elsewhere.write_bytes(path.read_bytes())
    assert digest.totals == digest_of(elsewhere).totals


def test_what_cannot_be_written(folder: Path) -> None:
    """Half a surrogate pair does not cause a failure: the digest is not kept."""
    started = STARTED.model_copy(update={"focus": "caf\udce9"})
    journal = Journal.create(folder, started, at=AT, sync=False, fold=DigestFold())
    journal.close()
    assert not kept(journal.path).exists()
    assert digest_of(journal.path).started.run_id == started.run_id


def test_nobody_else_sees_them(folder: Path) -> None:
    """Digests are as private as journals, and git ignores them."""
    path = write(folder)
    assert 0o700 == kept(path).parent.stat().st_mode & 0o777
    assert "*\n" == (kept(path).parent / ".gitignore").read_text()


def test_a_journal_that_is_gone(folder: Path) -> None:
    """Closing it is not an error."""
    journal = Journal.create(folder, STARTED, at=AT, sync=False, fold=DigestFold())
    journal.path.unlink()
    journal.close()
    journal.close()


def test_removed_with_the_journal(folder: Path) -> None:
    """Old journals are removed with their digests."""
    path = write(folder, ev.RunEnded(state="approved"))
    assert kept(path).exists()
    assert [path] == prune(folder, now=AT + timedelta(days=60), days=30, runs=100)
    assert not kept(path).exists()


def test_no_digest_is_written_through_a_link(folder: Path, tmp_path: Path) -> None:
    """A folder of digests that is a link leads to files of another program, which stay."""
    other = tmp_path / "other"
    other.mkdir()
    theirs = other / f"{STARTED.run_id}.json"
    theirs.write_text("theirs")
    folder.parent.mkdir(parents=True)
    folder.with_name("digests").symlink_to(other)
    path = write(folder, ev.RunEnded(state="approved"))
    assert read_journal(path).state == digest_of(path).state
    assert [path] == prune(folder, now=AT + timedelta(days=99), days=1, runs=1)
    assert ["theirs"] == [file.read_text() for file in other.iterdir()]


def test_the_target_of_a_linked_folder_keeps_its_permissions(tmp_path: Path) -> None:
    """The folder of journals is for the user alone, but not one that it is linked to."""
    other = tmp_path / "other"
    other.mkdir(mode=0o755)
    (tmp_path / ".cuggino").mkdir()
    (tmp_path / ".cuggino" / "journal").symlink_to(other)
    write(tmp_path / ".cuggino" / "journal")
    assert 0o755 == other.stat().st_mode & 0o777


SHORT: list[ev.Event] = [
    ev.PlanningStart(iteration=1),
    ev.SessionEnded(outcome="completed", cost_usd=0.25, duration=2.0),
    ev.RunEnded(state="approved"),
]


@pytest.fixture
def journals(tmp_path: Path) -> Path:
    return tmp_path / ".cuggino" / "journal"


def recorded(journals: Path, *events: ev.Event, number: int = 1, **started: Any) -> Path:
    """Write a journal, a second an entry."""
    first = ev.RunStarted.model_validate(
        {"run_id": f"0193-{number}", "kind": "run", "command": "c", "agent": "claude", **started}
    )
    journal = Journal.create(journals, first, at=AT, sync=False, fold=DigestFold())
    for second, event in enumerate(events or SHORT, 1):
        journal.append(event, at=AT + timedelta(seconds=second))
    journal.close()
    return journal.path


def ids(journals: Path, **given: str) -> list[str]:
    return [digest.started.run_id for digest in past_digests(journals, **given)]


def test_the_latest_first_without_one(journals: Path) -> None:
    """The latest run comes first; the one that is resumed is left out."""
    for number in range(3):
        recorded(journals, number=number)
    assert ["0193-2", "0193-1", "0193-0"] == ids(journals)
    assert ["0193-2", "0193-0"] == ids(journals, without="0193-1")


@pytest.mark.parametrize("content", [None, "", '{"v": 3}', "\0"])
def test_a_missing_digest_is_made_again(journals: Path, content: str | None) -> None:
    """Without a digest, or with one of an older version, a short journal is read."""
    path = recorded(journals)
    before = kept(path).read_text()
    kept(path).unlink()
    if content is not None:
        kept(path).write_text(content)
    assert ["0193-1"] == ids(journals)
    assert before == kept(path).read_text()


def test_long_journals_are_not_read(journals: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only so many bytes of journals are read; those with digests are none of them."""
    paths = [recorded(journals, number=number) for number in range(4)]
    for path in paths[1:]:
        kept(path).unlink()
    monkeypatch.setattr(digests, "_MOST_READ", 2 * paths[0].stat().st_size)
    assert ["0193-3", "0193-2", "0193-0"] == ids(journals)
    assert not kept(paths[1]).exists()


def test_what_cannot_be_read_is_left_out(journals: Path, tmp_path: Path) -> None:
    """Broken and empty journals, a missing folder and a file in its place are no errors."""
    for number, content in enumerate(["", "x\ny\n", '{"v":9}\n']):
        journals.mkdir(parents=True, exist_ok=True)
        (journals / f"0194-{number}.jsonl").write_text(content)
    recorded(journals)
    assert ["0193-1"] == ids(journals)
    assert [] == ids(tmp_path / "missing")
    file = tmp_path / "file"
    file.write_text("")
    assert [] == ids(file)


def test_a_journal_of_an_older_version(journals: Path) -> None:
    """Without the fields of this version a run has its parts, and no version of the prompts."""
    path = recorded(journals)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for name in ("agents", "prompts"):
        del lines[0]["event"][name]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (digest,) = past_digests(journals)
    assert ("", {}) == (digest.started.prompts, digest.started.agents)
    (part,) = digest.parts
    assert ("planning", "claude", 0.25) == (part.role, part.agent, part.cost_usd)


@pytest.mark.parametrize(
    ("kind", "item", "loop"),
    [
        ("run", None, "run"),
        ("run", "a.md 1", "item"),
        ("watch", None, None),
        ("loop", None, "loop"),
    ],
)
def test_past_run(kind: str, item: str | None, loop: str | None, journals: Path) -> None:
    """The figures for a forecast; the run of an item is no coding run of its own."""
    past = digest_of(recorded(journals, kind=kind, item=item)).past_run
    assert (loop, "approved", 3.0, 0.25) == (past.loop, past.state, past.duration, past.cost_usd)


def ended(cost: float | None = 1.0, **given: Any) -> ev.Event:
    return ev.SessionEnded(outcome="completed", cost_usd=cost, duration=5.0, **given)


def part(role: str, agent: str = "claude", model: str | None = None, **given: Any) -> RunPart:
    values = {"sessions": 1, "cost_usd": 1.0, "duration": 5.0, **given}
    return RunPart(role=role, agent=agent, model=model, **values)


REVIEWING = ev.ReviewingStart(iteration=1)
PLANNING, WORKING = ev.PlanningStart(iteration=1), ev.ImplementingStart(iteration=1)
UPDATE = ev.UsageUpdate(usage=ev.Usage(output_tokens=5), cost_usd=0.5)
FAST = UPDATE.model_copy(update={"model": "fast"})
FELL = ev.AgentFellBack(
    role="planning",
    from_agent="claude",
    to_agent="codex",
    reason="quota",
    message="limit",
    until=AT + timedelta(seconds=5),
)
LONGER = FELL.model_copy(update={"until": AT + timedelta(seconds=6)})
ROLES = {"agents": {"planning": ("claude", "opus"), "implementing": ("codex", None)}}

PARTS: dict[str, tuple[dict[str, Any], list[ev.Event], list[RunPart]]] = {
    "two roles": (
        {},
        [PLANNING, ended(), WORKING, ended()],
        [part("planning"), part("implementing")],
    ),
    "two sessions of a role": (
        {"options": {"model": "opus"}},
        [WORKING, ended(), WORKING, ended(None)],
        [part("implementing", model="opus", sessions=2, duration=10.0)],
    ),
    "the models that agents report, unless one is configured": (
        {},
        [PLANNING, UPDATE, ended(model="gpt-5.5"), PLANNING, FAST, ended(), WORKING, FAST],
        [
            part("planning", model="gpt-5.5"),
            part("planning", model="fast"),
            part("implementing", model="fast", cost_usd=0.5, duration=0.0),
        ],
    ),
    "agents per role": (
        ROLES,
        [PLANNING, ended(), WORKING, ended()],
        [part("planning", model="opus"), part("implementing", "codex")],
    ),
    "a killed session counts with its last update": (
        {},
        [PLANNING, UPDATE, ev.RunContinued(), UPDATE, ended()],
        [part("planning", sessions=2, cost_usd=1.5)],
    ),
    "a fallback, until its cooldown ends": (
        ROLES,
        [PLANNING, UPDATE, FELL, ended(), PLANNING, ended()],
        [
            part("planning", model="opus", sessions=2, cost_usd=1.5),
            part("planning", "codex"),
        ],
    ),
    "a fallback in the next roles, which have the same agent": (
        {},
        [PLANNING, UPDATE, LONGER, ended(), WORKING, ended(), REVIEWING, ended()],
        [
            part("planning", cost_usd=0.5, duration=0.0),
            part("planning", "codex"),
            part("implementing", "codex"),
            part("reviewing"),
        ],
    ),
    "an agent that never began": (
        {},
        [PLANNING, ev.RunEnded(state="failed")],
        [part("planning", sessions=0, cost_usd=None, duration=0.0)],
    ),
    "the deliver loop names the model": (
        {"kind": "deliver", "options": {"model": "opus"}},
        [ev.DeliverSessionStarted(session=1, instruction="coding", model="haiku"), ended()],
        [part("coding", model="haiku")],
    ),
    "the judge of the plan/build loop": (
        {"kind": "loop", "options": {"model": "opus", "verify_model": "haiku"}},
        [
            ev.PlanBuildPhaseStarted(phase="build", iteration=1),
            ended(),
            ev.PlanBuildPhaseStarted(phase="verify", iteration=1),
            ended(),
        ],
        [part("build", model="opus"), part("judge", model="haiku")],
    ),
    "a watch has the parts of its items in their runs": (
        {"kind": "watch"},
        [PLANNING, ended()],
        [],
    ),
}


@pytest.mark.parametrize("case", PARTS)
def test_parts(case: str, journals: Path) -> None:
    """Sessions count for the role, agent and model that they began with."""
    started, events, expected = PARTS[case]
    path = recorded(journals, *events, **started)
    written = digest_of(path)
    assert expected == list(written.parts)
    kept(path).unlink()
    assert written == digest_of(path)


NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
FIRST = RunStarted(run_id="0193-a", kind="run", command="cuggino run")
WORDS = [AgentMessage(text=text) for text in "abcdefg"]
RECORDED = [kind for kind in EVENTS if kind not in (MessageDelta, PingEvent)]
KINDS = [event_types()[tag] for tag in sorted(DIGESTED)]


def journal_of(folder: Path, *events: Event, stage: str | None = "a#1") -> Path:
    """Return a journal with one entry per second."""
    journal = Journal.create(folder, FIRST, at=NOON, sync=False)
    for seconds, event in zip(itertools.count(1), events, strict=False):
        journal.append(event, at=NOON + timedelta(seconds=seconds), stage=stage)
    journal.close()
    return journal.path


@pytest.mark.parametrize("stage", ["a#1", '"event":{"_tag": "RunEnded"', "x" * 500])
def test_wanted_tags_and_process_boundaries(tmp_path: Path, stage: str) -> None:
    """The given tags are read, plus the first and last entry of each process."""
    a, b, c, d, e, f, g = WORDS
    path = journal_of(tmp_path, a, b, RunContinued(), c, RunContinued(), d, e, f, g, stage=stage)
    seqs = {
        wanted: [entry.seq for entry in iter_entries(path, only=wanted)]
        for wanted in (("RunEnded",), ("AgentMessage",), ())
    }
    assert {("RunEnded",): [1, 3, 4, 5, 6, 10], ("AgentMessage",): list(range(1, 11))} | {
        (): [1, 3, 4, 5, 6, 10]
    } == seqs
    assert list(iter_entries(path, only=()))[-1].event == g


def test_the_end_and_a_torn_line(tmp_path: Path) -> None:
    """A partial read knows the end of the run and whether its last line is torn."""
    path = journal_of(tmp_path, *WORDS, RunEnded(state="approved"))
    with path.open("ab") as file:
        file.write(b'{"v":1')
    found = read_journal(path, only=())
    assert ("approved", True, 2) == (found.state, found.torn, len(found.entries))


def test_lines_with_other_whitespace(tmp_path: Path) -> None:
    """A journal rewritten by another program, with other whitespace, reads the same."""
    path = journal_of(tmp_path, *WORDS, RunContinued(), *WORDS)
    expected = [list(iter_entries(path, only=only)) for only in (None, (), DIGESTED)]
    for old, new in ((b'"event":', b'"event" : '), (b'"_tag": ', b'"_tag":')):
        path.write_bytes(path.read_bytes().replace(old, new))
        assert expected == [list(iter_entries(path, only=only)) for only in (None, (), DIGESTED)]


@settings(deadline=None)
@given(st.lists(st.sampled_from([*KINDS, *RECORDED]).flatmap(events_of), max_size=30))
def test_a_partial_read_gives_the_totals(
    tmp_path_factory: pytest.TempPathFactory, events: list[Event]
) -> None:
    """The totals of any run are the same from a partial read as from a full one."""
    path = journal_of(tmp_path_factory.mktemp("journal"), *events)
    assert (
        RunState.of(read_journal(path).entries).totals
        == RunState.of(iter_entries(path, only=DIGESTED)).totals
    )
