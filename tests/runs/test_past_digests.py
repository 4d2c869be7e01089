"""Digests of the latest journals, and the parts of roles, agents and models in them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cuggino import events as ev
from cuggino.runs import digests
from cuggino.runs.digests import DigestFold, digest_of, past_digests
from cuggino.storage.journal import Journal, RunPart

AT = datetime(2026, 11, 22, 9, tzinfo=UTC)
STORY: list[ev.Event] = [
    ev.PlanningStart(iteration=1),
    ev.SessionEnded(outcome="completed", cost_usd=0.25, duration=2.0),
    ev.RunEnded(state="approved"),
]


@pytest.fixture
def journals(tmp_path: Path) -> Path:
    return tmp_path / ".cuggino" / "journal"


def write(journals: Path, *events: ev.Event, number: int = 1, **started: Any) -> Path:
    """Write a journal, a second an entry."""
    first = ev.RunStarted.model_validate(
        {"run_id": f"0193-{number}", "kind": "run", "command": "c", "agent": "claude", **started}
    )
    journal = Journal.create(journals, first, at=AT, sync=False, fold=DigestFold())
    for second, event in enumerate(events or STORY, 1):
        journal.append(event, at=AT + timedelta(seconds=second))
    journal.close()
    return journal.path


def kept(path: Path) -> Path:
    return path.parent.with_name("digests") / f"{path.stem}.json"


def ids(journals: Path, **given: str) -> list[str]:
    return [digest.started.run_id for digest in past_digests(journals, **given)]


def test_the_latest_first_without_one(journals: Path) -> None:
    """The latest run comes first; the one that is resumed is left out."""
    for number in range(3):
        write(journals, number=number)
    assert ["0193-2", "0193-1", "0193-0"] == ids(journals)
    assert ["0193-2", "0193-0"] == ids(journals, without="0193-1")


@pytest.mark.parametrize("content", [None, "", '{"v": 3}', "\0"])
def test_a_missing_digest_is_made_again(journals: Path, content: str | None) -> None:
    """Without a digest, or with one of an older version, a short journal is read."""
    path = write(journals)
    before = kept(path).read_text()
    kept(path).unlink()
    if content is not None:
        kept(path).write_text(content)
    assert ["0193-1"] == ids(journals)
    assert before == kept(path).read_text()


def test_long_journals_are_not_read(journals: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only so many bytes of journals are read; those with digests are none of them."""
    paths = [write(journals, number=number) for number in range(4)]
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
    write(journals)
    assert ["0193-1"] == ids(journals)
    assert [] == ids(tmp_path / "missing")
    file = tmp_path / "file"
    file.write_text("")
    assert [] == ids(file)


def test_a_journal_of_an_older_version(journals: Path) -> None:
    """Without the fields of this version a run has its parts, and no version of the prompts."""
    path = write(journals)
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
    past = digest_of(write(journals, kind=kind, item=item)).past_run
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
    path = write(journals, *events, **started)
    written = digest_of(path)
    assert expected == list(written.parts)
    kept(path).unlink()
    assert written == digest_of(path)
