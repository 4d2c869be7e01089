"""Agents of roles, fallbacks, the agent of a resumed run, and estimated costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, empty, operators as ops

from cuggino import Runtime, events as ev, run
from cuggino.agents import Capabilities
from cuggino.storage import Workspace, list_journals, read_journal
from cuggino.testing import InMemoryAgent, no_leaks
from cuggino_cli.main import main
from tests.cli import deliveries, loops
from tests.cli.cli import Cli
from tests.cli.deliveries import Loop
from tests.cli.falling import (
    HALF,
    IMPLEMENTS,
    LIMITED,
    PLANS,
    Lines,
    Loose,
    fallen,
    scenarios,
    typed,
)
from tests.cli.loops import DrawnLoop
from tests.cli.recorded_runs import ONE, SAID, TWO, record
from tests.cli.rounds import APPROVES, agent, plans, reviews
from tests.cli.stamps import unstamped

pytestmark = pytest.mark.usefixtures("no_engine")


class TestRun:
    def test_another_takes_over(self, ready: Path, said: Lines) -> None:
        """The fallback repeats the task, keeps the first agent's files, and both costs count."""
        scenarios(ready, a=PLANS + HALF, b=IMPLEMENTS + APPROVES)
        typed(ready, '{"agent": "scripted:a.toml", "fallback": ["scripted:b.toml"]}')
        with no_leaks():
            code = main(["run", "--focus", "x", "--json"])
        events = said()
        assert 0 == code
        assert isinstance(events[-1], ev.LoopApproved)
        names = ("scripted:a.toml", "scripted:b.toml")
        assert [("implementing", *names, "quota")] == fallen(events)
        costs = {event.phase: event.cost_usd for event in events if isinstance(event, ev.StageCost)}
        assert pytest.approx(0.05) == costs["implementing"]
        assert "by a" == (ready / "half.txt").read_text()
        assert "by b" == (ready / "whole.txt").read_text()

    def test_the_output(self, ready: Path, capfd: pytest.CaptureFixture[str]) -> None:
        """One line names both agents, the role, the reason and the end of the cooldown."""
        scenarios(ready, a=PLANS + HALF, b=IMPLEMENTS + APPROVES)
        typed(ready, '{"agent": "scripted:a.toml", "fallback": ["scripted:b.toml"]}')
        assert 0 == main(["run", "--focus", "x"])
        (line,) = [x for x in unstamped(capfd.readouterr().out) if "Falling back" in x]
        what = "[Agent] Falling back from scripted:a.toml to scripted:b.toml as implementing"
        assert line.startswith(f"{what} (quota until 2")
        assert line.endswith(": You've hit your limit")

    def test_each_role_its_agent(self, ready: Path, said: Lines) -> None:
        """Configured roles keep their agents; `--agent` applies to the other roles."""
        scenarios(ready, a=PLANS, b=IMPLEMENTS, c=APPROVES)
        typed(
            ready,
            """{
              "agent": "nobody",
              "agents": {
                "implementing": "scripted:b.toml",
                "reviewing": {"agent": "scripted:c.toml", "model": "opus"}
              }
            }""",
        )
        assert 0 == main(["run", "--focus", "x", "--json", "--agent", "scripted:a.toml"])
        events = said()
        assert isinstance(events[-1], ev.LoopApproved)
        assert [] == fallen(events)
        (path,) = list_journals(Workspace(ready).journal)
        started = read_journal(path).started
        assert isinstance(started, ev.RunStarted)
        assert "scripted:a.toml" == started.agent

    def test_a_missing_agent(self, ready: Path, capfd: pytest.CaptureFixture[str]) -> None:
        """A missing program is reported at the start, and its fallback works."""
        scenarios(ready, b=PLANS + IMPLEMENTS + APPROVES)
        typed(ready, '{"agentPath": "./missing", "fallback": ["scripted:b.toml"]}')
        assert 0 == main(["run", "--focus", "x", "--json"])
        out, err = capfd.readouterr()
        events = [ev.parse_event(line) for line in out.splitlines()]
        assert [("planning", "claude", "scripted:b.toml", "not_found")] == fallen(events)
        assert err.startswith("cuggino: claude cannot work: the agent program")

    def test_no_agent_is_left(self, ready: Path, said: Lines) -> None:
        """When every agent hits its limit the run ends with 12 and can be resumed."""
        scenarios(
            ready,
            a=PLANS + HALF,
            b=agent(
                "implementing", {"limit": {"status": "rejected", "resets_in": 1800}}, LIMITED[1]
            ),
            c=IMPLEMENTS + APPROVES,
        )
        typed(ready, '{"agent": "scripted:a.toml", "fallback": ["scripted:b.toml"]}')
        assert 12 == main(["run", "--focus", "x", "--json"])
        assert 1 == len(fallen(said()))
        typed(ready, '{"agent": "scripted:a.toml", "fallback": ["scripted:c.toml"]}')
        scenarios(ready, a=agent("implementing", *LIMITED))
        assert 0 == main(["run", "--resume", "--json"])
        assert isinstance(said()[-1], ev.LoopApproved)

    def test_a_fallback_is_guarded_too(self, ready: Path, said: Lines) -> None:
        """The fallback has the write permissions of the role and no more."""
        scenarios(ready, a=PLANS + HALF, b=IMPLEMENTS.replace("whole.txt", ".specs/login.md"))
        typed(ready, '{"agent": "scripted:a.toml", "fallback": ["scripted:b.toml"]}')
        main(["run", "--focus", "x", "--json", "--no-sandbox"])
        events = said()
        assert 1 == len(fallen(events))
        assert 1 == sum(isinstance(event, ev.GuardDenied) for event in events)
        assert "# Login\n" == (ready / ".specs" / "login.md").read_text()

    def test_a_fallback_without_a_guard(
        self, ready: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        """A fallback without guard support is rejected at the start, unless the guard is off."""
        scenarios(ready, a=PLANS + IMPLEMENTS + APPROVES)
        spare = f"{Loose.__module__}:Loose"
        typed(ready, json.dumps({"agent": "scripted:a.toml", "fallback": [spare]}))
        assert 2 == main(["run", "--focus", "x"])
        err = capfd.readouterr().err
        assert f"{spare}, one of the agents for planning, has no guard" in err
        assert not (ready / ".cuggino").exists()
        typed(ready, json.dumps({"agent": "scripted:a.toml", "fallback": [spare], "guard": "off"}))
        assert 0 == main(["run", "--focus", "x"])

    def test_an_unguarded_role_is_reported(
        self, ready: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        """An agent without guard support is reported at the start with its role."""
        scenarios(ready, a=PLANS + IMPLEMENTS)
        spare = f"{Loose.__module__}:Loose"
        typed(ready, json.dumps({"agent": "scripted:a.toml", "agents": {"reviewing": spare}}))
        assert 1 == main(["run", "--focus", "x"])
        expected = f"{spare} (reviewing) is unguarded: nothing limits it to its role"
        assert f"cuggino: {expected}" in capfd.readouterr().err.splitlines()

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                '{"agents": {"reviwing": "claude"}}',
                '.cuggino.json: unknown key "reviwing" in "agents"',
            ),
            (
                '{"agents": {"reviewing": "cladue"}}',
                '.cuggino.json: "agents.reviewing": unknown agent "cladue"',
            ),
            (
                '{"fallback": ["claude", "scripted:no.toml"]}',
                '.cuggino.json: "fallback[1]": scenario ',
            ),
        ],
    )
    @pytest.mark.parametrize("command", [["run", "-f", "x"], ["watch"], ["deliver"], ["loop"]])
    def test_invalid_settings(
        self,
        command: list[str],
        text: str,
        message: str,
        ready: Path,
        capfd: pytest.CaptureFixture[str],
    ) -> None:
        """Every loop reports the error and its place in one sentence, and exits with 2."""
        typed(ready, text)
        assert 2 == main(command)
        assert capfd.readouterr().err.startswith(f"cuggino: {message}")


def test_watch(ready: Path) -> None:
    """The watch completes an item with two agents and audits with a third."""
    scenarios(
        ready,
        a=PLANS + HALF,
        b=IMPLEMENTS + APPROVES,
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
        a=first + agent("coding", *LIMITED),
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
        a=plan + agent("build", *LIMITED),
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


def sessions(model: str, work: str) -> str:
    """Return a scenario in which, with gpt-5.5, planning costs $0.18 and implementing $1.60."""
    planned = {"input_tokens": 20000, "output_tokens": 1000, "cache_read_tokens": 100000}
    worked = {"input_tokens": 100000, "output_tokens": 20000, "cache_read_tokens": 1000000}
    steps = ({"usage": worked}, {"run": work}, {"say": "<DONE>all of it</DONE>"})
    return (
        plans("# Plan\n\n- [ ] one\n", {"usage": planned}, model=model)
        + agent("implementing", *steps, model=model)
        + reviews("<APPROVED>fine</APPROVED>", cost_usd=0.5)
    )


class Tokens(InMemoryAgent):
    """An agent that is known to report no dollars."""

    def __init__(self) -> None:
        super().__init__({})

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(cost="tokens")


def plays(folder: Path, *, model: str = "gpt-5.5", work: str = "true", **config: object) -> None:
    (folder / "scenario.toml").write_text(sessions(model, work))
    settings = {"agent": "scripted:scenario.toml", **config}
    (folder / ".cuggino.json").write_text(json.dumps(settings))


def run_priced(*words: str) -> int:
    with no_leaks():
        return main(["run", "--focus", "x", *words])


def test_marked_in_every_view(ready: Path, cli: Cli) -> None:
    """An estimate, and a sum with one, is marked wherever money is shown."""
    plays(ready)
    assert 0 == run_priced()
    shown = cli.printed().out
    assert "[Planning] 0s, ~$0.18, 21.0k tokens (run total ~$0.18)" in shown
    assert "$0.50 (run total ~$2.28)" in shown  # the reviewer reports dollars
    assert "  Cost       ~$2.28\n" in shown

    def output(*words: str) -> str:
        assert main([*words]) in (0, 3)  # 3: nothing is at work
        return cli.printed().out

    run_id = json.loads(output("runs", "--json"))["run_id"]
    assert "~$2.28" in output("runs")
    assert "  Cost       ~$2.28\n" in output("runs", "show", run_id)
    assert "  Cost       ~$2.28, 141,000 tokens\n" in output("status")
    told = json.loads(output("runs", "--json"))
    assert (2.28, True) == (round(told["cost_usd"], 6), told["cost_estimated"])
    rows = json.loads(output("runs", "--stats", "--json"))["role"]
    assert {"planning": True, "implementing": True, "reviewing": False} == {
        row["name"]: row["cost_estimated"] for row in rows
    }
    assert "~$2.28" in output("runs", "--stats")
    status = json.loads(output("status", "--json"))["last"]
    assert (2.28, True) == (round(status["cost_usd"], 6), status["cost_estimated"])
    report = json.loads(output("report", run_id, "--json"))
    assert (2.28, True) == (report["cost_usd"], report["cost_estimated"])
    assert {"planning": True, "implementing": True, "reviewing": False} == {
        one["role"]: one["cost_estimated"] for one in report["roles"] if one["cost_usd"]
    }
    stages = {one["kind"]: one["cost_estimated"] for one in report["stages"]}
    assert (True, False) == (stages["planning"], stages["reviewing"])
    output("report", run_id, "-o", "page.html")
    page = (ready / "page.html").read_text(encoding="utf-8")
    assert "~$2.28" in page
    assert "~$1.60" in page
    assert "~$0.50" not in page
    assert "$0.50" in page


def test_the_budget_cuts_the_running_agent(ready: Path, cli: Cli) -> None:
    """The session that exceeds the budget is cut at once, with exit code 13."""
    plays(ready, work="sleep 60; touch late")
    assert 13 == run_priced("--budget", "1")
    out, err = cli.printed()
    assert "[Budget] 178% of the cost spent: ~$1.78 of $1.00" in out
    assert "The budget of the run is used up: ~$1.78 of $1.00 spent" in err
    assert not (ready / "late").exists()


def test_an_unknown_price_ends_a_run_with_a_budget(ready: Path, cli: Cli) -> None:
    """Nothing continues whose cost is unknown, and the message says what to set."""
    plays(ready, model="gpt-99")
    assert 13 == run_priced("--budget", "1")
    out, err = cli.printed()
    why = 'scripted reports no dollars, and the price of its model "gpt-99" is unknown'
    assert f"[Budget] Unknown cost: {why}" in out
    assert "[Implementing] ▶" not in out
    assert f"The budget of $1.00 cannot hold: {why}" in err
    assert "--price-as claude-sonnet-4-5" in err


def test_price_as(ready: Path, said: Lines) -> None:
    """The named model prices an unknown one, by option or setting."""
    for words, settings in (
        (("--price-as", "gpt-5.5"), {}),
        ((), {"priceAs": "gpt-5.5"}),
    ):
        plays(ready, model="gpt-99", **settings)
        assert 0 == run_priced("--budget", "5", "--json", *words)
        costs = [event for event in said() if isinstance(event, ev.StageCost)]
        # 5 dollars for a million input tokens; output counts five times as much.
        assert [pytest.approx(0.175), pytest.approx(1.5), 0.5] == [one.cost_usd for one in costs]
        assert [True, True, False] == [one.cost_estimated for one in costs]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--price-as", "gpt-99"), 'the price of "gpt-99" in priceAs is unknown'),
        (
            ("--budget", "1", "--agent", "tests.cli.test_fallback:Tokens"),
            "The budget of $1.00 cannot hold: memory reports no dollars, and the price of its "
            'model "gpt-99" is unknown',
        ),
    ],
)
def test_refused_at_the_start(words: tuple[str, ...], message: str, ready: Path, cli: Cli) -> None:
    """What is known before the first agent is an error of configuration."""
    plays(ready, commit=False, guard="off")
    (ready / ".cuggino.json").write_text(
        json.dumps({"agent": "scripted:scenario.toml", "model": "gpt-99", "guard": "off"})
    )
    assert 2 == run_priced(*words)
    out, err = cli.printed()
    assert message in err
    assert "[Loop]" not in out


@pytest.mark.parametrize(("count", "code"), [("weighted", 13), ("plain", 0)])
def test_tokens_are_counted_as_configured(count: str, code: int, ready: Path, cli: Cli) -> None:
    """A limit of tokens counts by price, unless the setting says otherwise."""
    plays(ready, maxTokens=200_000, countTokens=count)
    assert code == run_priced()
    out, err = cli.printed()
    # 35,000 by planning, and 300,000 by implementing.
    weighted = "335,000 of 200,000 weighted tokens"
    assert (weighted in err) is (count == "weighted")
    assert (f"[Budget] 168% of the tokens spent: {weighted}" in out) is (count == "weighted")
    main(["status"])
    shown = weighted if count == "weighted" else "141,000 of 200,000 tokens"
    assert f", {shown}\n" in cli.printed().out


OWN, OTHER = "scripted:own.toml", "scripted:other.toml"


def recorded(folder: Path, kind: str) -> None:
    """Record two unfinished runs: one with its own agent, and a later one without."""
    for name in ("own.toml", "other.toml"):
        (folder / name).touch()
    record(folder, ONE, *SAID, kind=kind, agent=OWN)
    record(folder, TWO, *SAID, kind=kind, agent="")


def agents_of(command: str, runtimes: list[Runtime]) -> list[str]:
    """Return the agents used to resume the first run, the later one, and with `--agent`."""
    main([command, "--resume", ONE])
    main([command, "--resume"])
    main([command, "--resume", ONE, "--agent", OTHER])
    return [runtime.agent_name for runtime in runtimes]


def test_resumed_run(ready: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A resumed run uses the given agent, its own, or the configured one."""
    runtimes: list[Runtime] = []

    def resume(runtime: Runtime, run_id: str | None = None, **_options: Any) -> Observable[Any]:
        runtimes.append(runtime)
        return empty()

    monkeypatch.setattr(Runtime, "resume", resume)
    recorded(ready, "run")
    assert [OWN, "scripted:scenario.toml", OTHER] == agents_of("run", runtimes)


def test_resumed_delivery(delivered: Path, loop: Loop) -> None:
    """A resumed delivery chooses its agent the same way."""
    recorded(delivered, "deliver")
    usual = json.loads((delivered / ".cuggino.json").read_text())["agent"]
    assert [OWN, usual, OTHER] == agents_of("deliver", loop.runtimes)


def test_resumed_loop(looping: Path, drawn_loop: DrawnLoop) -> None:
    """A resumed loop prefers its own agent to the loop files, and these to the configuration."""
    recorded(looping, "loop")
    assert [OWN, "scripted:scenario.toml", OTHER] == agents_of("loop", drawn_loop.runtimes)
    (looping / "third.toml").touch()
    (looping / ".lopen").mkdir()
    file = looping / ".lopen" / "loop-config.json"
    file.write_text(json.dumps({"agent": "scripted:third.toml"}))
    drawn_loop.runtimes.clear()
    assert [OWN, "scripted:third.toml", OTHER] == agents_of("loop", drawn_loop.runtimes)


@pytest.mark.parametrize("command", ["run", "deliver", "loop"])
def test_a_removed_agent(ready: Path, cli: Cli, command: str) -> None:
    """A run of an agent that was removed is listed, and resumed with another one only."""
    record(ready, ONE, *SAID, kind=command, agent="claude-sdk")
    assert 2 == main([command, "--resume"])
    expected = 'cuggino: the agent "claude-sdk" was removed: use `claude`, the same program\n'
    assert ("", expected) == cli.printed()
    assert "claude-sdk" == json.loads(cli("runs", "--json"))["agent"]
