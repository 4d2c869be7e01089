"""The other loops with agents of roles and fallbacks, configured in a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from reactivex import operators as ops

from cuggino import Runtime, events as ev, run
from cuggino.storage import Workspace
from cuggino.testing import no_leaks
from cuggino_cli.main import main
from tests.cli import deliveries, loops
from tests.cli.falling import (
    HALF,
    IMPLEMENTS,
    LIMIT,
    PLANS,
    REVIEWS,
    Lines,
    fallen,
    scenarios,
    typed,
)


def test_watch(ready: Path) -> None:
    """The watch completes an item with two agents and audits with a third."""
    scenarios(
        ready,
        a=PLANS + HALF,
        b=IMPLEMENTS + REVIEWS,
        c='[[audit]]\nsteps = [{ say = "<TO_BE_DISCUSSED>odd</TO_BE_DISCUSSED>" }]',
    )
    typed(
        ready,
        """{
          "audit": true,
          "settleSeconds": 0.2,
          "agent": "scripted:a.toml",
          "agents": {"audit": "scripted:c.toml"},
          "fallback": ["scripted:b.toml"]
        }""",
    )
    item = Workspace(ready).backlog / "010-x.md"
    seen: list[ev.Event] = []

    def note(event: ev.Event) -> None:
        seen.append(event)
        if isinstance(event, ev.WatchAuditEnded):
            item.write_text("Do it.")

    watch = Runtime.live(cwd=ready).watch()
    with no_leaks():
        run(watch.pipe(ops.take_while(lambda e: not isinstance(e, ev.WatchItemCompleted))), note)
    assert 1 == sum(isinstance(event, ev.WatchTbdItemFound) for event in seen)
    assert [("implementing", "scripted:a.toml", "scripted:b.toml", "quota")] == fallen(seen)


@pytest.mark.usefixtures("no_session_pause")
def test_deliver(delivered: Path, said: Lines) -> None:
    """A deliverables session continues with its fallback, with working tools."""
    first, _, rest = deliveries.SCENARIO.partition("[[coding]]")
    scenarios(
        delivered,
        a=f"{first}[[coding]]\n{LIMIT.format(role='coding')}",
        b=f"[[coding]]{rest}",
    )
    typed(
        delivered,
        """{
          "agent": "nobody",
          "agents": {"initializer": "scripted:a.toml"},
          "fallback": ["scripted:b.toml"]
        }""",
    )
    assert 0 == main(["deliver", "--json", "--agent", "scripted:a.toml"])
    names = ("scripted:a.toml", "scripted:b.toml")
    assert [("coding", *names, "quota")] == fallen(said())


def test_loop(looping: Path, said: Lines) -> None:
    """The plan/build loop plans, builds and verifies with different agents."""
    plan, _, rest = loops.SCENARIO.partition("[[build]]")
    build, _, judge = rest.partition("[[judge]]")
    scenarios(
        looping,
        a=f"{plan}[[build]]\n{LIMIT.format(role='build')}",
        b=f"[[build]]{build}",
        c=f"[[judge]]{judge}",
    )
    typed(
        looping,
        """{
          "agent": "scripted:a.toml",
          "agents": {"judge": {"agent": "scripted:c.toml", "fallback": []}},
          "fallback": ["scripted:b.toml"]
        }""",
    )
    assert 0 == main(["loop", "--auto", "--json"])
    assert [("build", "scripted:a.toml", "scripted:b.toml", "quota")] == fallen(said())


@pytest.mark.parametrize("command", ["run", "watch", "deliver", "loop"])
def test_the_help_explains_roles(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The help of `--agent` explains that configured roles keep their agents."""
    main([command, "--help"])
    said = " ".join(capfd.readouterr().out.split())
    assert 'Roles keep the agent that "agents" in .cuggino.json names' in said
