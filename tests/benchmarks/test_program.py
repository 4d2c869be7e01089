"""The benchmark program: its table, its JSON, its verdicts, its fake agent."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cuggino.agents.claude.wire import ClaudeSession
from cuggino.events import AgentMessage, LlmAgentEvent, Thinking, ToolCall, ToolResult, UsageUpdate
from tests.benchmarks.__main__ import GROUPS, shown
from tests.benchmarks.handover import edges
from tests.benchmarks.measuring import Figure, Skipped, in_turns
from tests.benchmarks.project import (
    Project,
    Tool,
    Tree,
    iterations,
    prints,
    prints_alone,
    prints_file,
    prints_lines,
)
from tests.benchmarks.sessions import TURN, long_lines, session, write_large, write_session
from tests.benchmarks.stream import SHAPES
from tests.benchmarks.targets import TARGETS, Target
from tests.limits import LIMIT

ROOT = Path(__file__).parents[2]


def benchmarks(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.benchmarks", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


@pytest.mark.real_agent
def test_table_and_json(tmp_path: Path) -> None:
    """Each figure is a row of the table and in the JSON."""
    file = tmp_path / "figures.json"
    done = benchmarks("--quick", "--json", str(file), "journal")
    assert (0, "") == (done.returncode, done.stderr)
    head, rule, *rows = done.stdout.splitlines()
    assert (head, rule) == (
        "| what | took | floor | that is | ratio | target |",
        "|---|---|---|---|---|---|",
    )
    figures = json.loads(file.read_text())["figures"]
    assert len(rows) == len(figures) == 2
    for row, figure in zip(rows, figures, strict=True):
        assert "journal" == figure["group"]
        assert row.startswith(f"| {figure['name']} | ")
        assert figure["ratio"] == pytest.approx(figure["value"] / figure["floor"])


@pytest.mark.real_agent  # many processes: with the second command
def test_against(tmp_path: Path) -> None:
    """Another command line runs in the same project with the same agents."""
    file = tmp_path / "figures.json"
    command = "for each in .specs/a.md x x; do claude -p $each; done; exit 3"
    done = benchmarks("--quick", "--json", str(file), "--against", command, "small")
    assert 0 == done.returncode, done.stderr
    ours, _, peer, _ = json.loads(file.read_text())["figures"]
    assert ("small.wall", "small.peer.wall") == (ours["key"], peer["key"])
    assert f"{command}: 3 instant agents, wall time" == peer["name"]
    assert ours["floor"] == peer["floor"]


@pytest.mark.real_agent  # many processes: with the second command
def test_against_what_does_not_work(tmp_path: Path) -> None:
    """A command line without agents, and one that does not end, is skipped with the reason."""
    done = benchmarks("--quick", "--against", "true | true", "small")
    assert (0, "") == (done.returncode, done.stderr)
    assert "| small | skipped: true \\| true has started no `claude` |" in done.stdout
    here = Project(tmp_path)
    endless = replace(Tool.peer("claude; sleep 3600 & wait"), limit=0.2)
    with pytest.raises(Skipped, match=r"has not ended after 0\.2 s"):
        here.run(endless)


@pytest.mark.real_agent
def test_another_checkout() -> None:
    """Its figures are rows beside those of this one."""
    done = benchmarks("--quick", "--before", sys.executable, "start", "iterate")
    assert (0, "") == (done.returncode, done.stderr)
    names = [row.split("|")[1].strip() for row in done.stdout.splitlines()[2:]]
    assert 14 == len(names)
    assert ["cuggino --version, CPU", "cuggino --version, before, CPU"] == names[:2]


@pytest.mark.real_agent  # many processes
def test_the_current_folder_is_not_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cuggino of the interpreter is measured, not one in the current folder."""
    (tmp_path / "cuggino.py").write_text("raise SystemExit('the wrong one')\n")
    monkeypatch.chdir(tmp_path)
    assert 4 == len(list(edges(count=10, rounds=1)))


def test_a_checkout_without_cuggino(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A place without an installed cuggino is refused."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with pytest.raises(ValueError, match="cuggino is not installed in"):
        Tree.before(str(tmp_path))


def test_another_checkout_with_a_python_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """`PYTHONPATH`, which would decide what both import, is refused."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with pytest.raises(ValueError, match="PYTHONPATH is set"):
        Tree.before(sys.executable)


def test_another_checkout_has_no_targets() -> None:
    """The keys of its figures are its own."""
    before = Tree(sys.executable, "before")
    assert ("start.run.before", "x, before") == (before.key("start.run"), before.named("x"))
    assert "start.run.before" not in TARGETS


def test_shapes_of_sessions() -> None:
    """All are read as sessions of Claude Code, and have the lines per turn that are stated."""
    for shape in SHAPES.values():
        few, many = (list(shape.lines(turns)) for turns in (1, 3))
        assert 2 * shape.turn == len(many) - len(few)
        reader = ClaudeSession()
        for line in many:
            json.loads(line)
            reader.feed(line.strip(), now=0.0)
        assert reader.end(exit_code=0, stderr_tail="", duration=1.0, now=0.0)[1] is None


@pytest.mark.real_agent  # many processes for long
@pytest.mark.timeout(4 * LIMIT)
def test_all_groups(tmp_path: Path) -> None:
    """Every group measures something, and every target has a figure."""
    figures: list[dict[str, object]] = []
    names = list(GROUPS)
    for first in range(0, len(names), 8):
        file = tmp_path / f"figures-{first}.json"
        done = benchmarks("--quick", "--json", str(file), *names[first : first + 8])
        assert (0, "") == (done.returncode, done.stderr)
        figures += json.loads(file.read_text())["figures"]
    assert set(GROUPS) == {figure["group"] for figure in figures}
    kinds = {key.rstrip("0123456789") for key in TARGETS}
    assert kinds <= {str(figure["key"]).rstrip("0123456789") for figure in figures}


@pytest.mark.real_agent  # many processes: with the second command
def test_all_compared_groups() -> None:
    """Every group that compares measures another command line, too."""
    assert 0 == benchmarks("--quick", "--against", "claude -p x | cat >/dev/null").returncode


@pytest.mark.real_agent
def test_unknown_group() -> None:
    """An unknown group is rejected with the list of known ones."""
    done = benchmarks("speed")
    assert 2 == done.returncode
    assert "there is no group 'speed': choose from start, " in done.stderr


@pytest.mark.parametrize(
    ("target", "floor", "expected"),
    [
        (Target(1.5, "x"), 4.0, "| x | 5 s | 4 s | y | 1.25 | 1.5 ok |"),
        (Target(1.2, "x"), 4.0, "| x | 5 s | 4 s | y | 1.25 | 1.2 MISSED |"),
        (Target(6.0, "s"), 4.0, "| x | 5 s | 4 s | y | 1.25 | 6 s ok |"),
        (Target(4.5, "s"), None, "| x | 5 s |  | y |  | 4.5 s MISSED |"),
        (Target(4.5, "x"), None, "| x | 5 s |  | y |  | 4.5 MISSED |"),
        (None, 4.0, "| x | 5 s | 4 s | y | 1.25 |  |"),
    ],
)
def test_verdict(
    monkeypatch: pytest.MonkeyPatch, target: Target | None, floor: float | None, expected: str
) -> None:
    """A target limits the ratio or the value."""
    targets = {} if target is None else {"k": target}
    monkeypatch.setattr("tests.benchmarks.measuring.TARGETS", targets)
    figure = Figure(key="k", name="x", value=5.0, unit="s", floor=floor, floor_name="y")
    assert expected == shown(figure)


def test_turns() -> None:
    """Calls are interleaved, warm-up calls are not counted, and the median is returned."""
    said: list[str] = []
    numbers = iter([100.0, 3.0, 1.0, 2.0])

    def one() -> float:
        said.append("one")
        return next(numbers)

    def two() -> float:
        said.append("two")
        return 7.0

    assert [2.0, 7.0] == in_turns(3, one, two)
    assert ["one", "two"] * 4 == said


def test_session() -> None:
    """A session is read as that of Claude Code: messages, thinking, calls, results, usage."""
    lines = list(session(10))
    assert 10 * TURN + 4 == len(lines)
    reader = ClaudeSession()
    events: list[LlmAgentEvent] = []
    for line in lines:
        json.loads(line)
        assert line.endswith(b"}\n")
        events.extend(reader.feed(line.strip(), now=0.0))
    counts = {
        kind: sum(isinstance(event, kind) for event in events)
        for kind in (AgentMessage, Thinking, ToolCall, ToolResult, UsageUpdate)
    }
    assert [11, 10, 20, 20, 10] == list(counts.values())
    ended, error = reader.end(exit_code=0, stderr_tail="", duration=1.0, now=0.0)
    assert error is None
    assert 0.01 == ended.cost_usd


def test_sizes_of_sessions(tmp_path: Path) -> None:
    """Long sessions have the requested size, and long lines the requested length."""
    path = tmp_path / "session"
    assert 2**20 <= write_large(path, size=2**20) < 2**21
    assert "result" == json.loads(path.read_bytes().splitlines()[-1])["type"]
    size = write_session(path, long_lines(2**16, size=2**20))
    assert size == path.stat().st_size == pytest.approx(2**20, rel=0.05)
    lengths = sorted(map(len, path.read_bytes().splitlines()))
    assert lengths[-16:] == pytest.approx([2**16] * 16, rel=0.01)


def test_fake_agent(tmp_path: Path) -> None:
    """The fake agent is first on the PATH, and plays one session a call, then the last again."""
    here = Project(tmp_path)
    file = tmp_path / "file"
    write_session(file, session(1))
    here.plays(
        prints([b"it's\n", b'"\\n"\n']),
        prints_file(file),
        prints_lines(file),
        prints_alone(file, pause=0.0),
    )

    def said() -> bytes:
        return subprocess.run(
            ["claude", "-p"], cwd=here.folder, env=here.env, capture_output=True, check=True
        ).stdout

    assert [b'it\'s\n"\\n"\n', *[file.read_bytes()] * 4] == [said() for _ in range(5)]
    assert 5 == here.calls
    here.run(Tool.peer("echo left >left; mkdir .cuggino; claude; claude"))
    assert 2 == here.calls
    here.restore()
    assert {".git", ".gitignore", ".specs", ".cuggino.json"} == {
        path.name for path in here.folder.iterdir()
    }


@pytest.mark.parametrize("words", ["plan it in `.cuggino/wip/a.plan.md`", "--append 'x/plan.md'"])
def test_plan_of_another_tool(tmp_path: Path, words: str) -> None:
    """The planning agent writes the plan where its arguments want it."""
    here = Project(tmp_path)
    here.plays(*iterations(1))
    (here.folder / ".cuggino" / "wip").mkdir(parents=True)
    (here.folder / "x").mkdir()
    env = {name: value for name, value in here.env.items() if name != "CUGGINO_PLAN_FILE"}
    subprocess.run([str(here.agent), "-p", words], cwd=here.folder, env=env, check=True)
    (plan,) = here.folder.rglob("*plan.md")
    assert plan.read_text().startswith("# Plan\n")
