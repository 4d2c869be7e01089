"""The engine of the behavior table on tools of ours, which fail in every way that it scores."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.behavior import engine
from tests.behavior.__main__ import chosen, main, problems_of
from tests.behavior.engine import Outcome, last_words, play
from tests.behavior.place import Place
from tests.behavior.scenarios import SCENARIOS, Act, Scenario
from tests.behavior.table import Results, line, markdown
from tests.behavior.tools import TOOLS, Tool

(LIAR,) = chosen(SCENARIOS, "liar")
(HONEST,) = chosen(SCENARIOS, "orphan")
CUGGINO = TOOLS[0].found({})
SESSION = "claude -p go"
LINUX = pytest.mark.skipif(not Path("/proc").exists(), reason="elsewhere a process hides more")


def tool(folder: Path, *lines: str) -> Tool:
    """Return a tool that is a shell script."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "loop"
    program.write_text("\n".join(("#!/bin/sh", *lines)) + "\n")
    program.chmod(0o755)
    return Tool(
        name="loop",
        program="loop",
        pinned="1.0",
        installs="by hand",
        command=("{program}",),
        signal="ALL DONE",
    ).found({"loop": folder})


def scenario(*acts: Act, **fields: object) -> Scenario:
    fields = {"needs": ("git",), **fields}
    return replace(HONEST, acts=acts, **fields)  # type: ignore[arg-type]  # any of its fields


@pytest.mark.parametrize(
    ("acts", "lines", "expected"),
    [
        pytest.param((Act(),), [SESSION], {"is_fooled": True, "sessions": 1}, id="false done"),
        pytest.param(
            (Act(adds="correct"),),
            [SESSION, SESSION],
            {"is_fooled": False, "is_done": True, "sessions": 2, "usd": 0.2, "lost": ()},
            id="done",
        ),
        pytest.param(
            (Act(adds="correct"),),
            [SESSION, "git reset -q --hard HEAD~1", "git reflog expire --expire=now --all"],
            {"is_fooled": True, "lost": ("correct",)},
            id="lost work",
        ),
        pytest.param(
            (Act(adds="correct", run="sleep 600 >&- 2>&- <&- &"),),
            [SESSION],
            {"is_done": True, "left": 1},
            id="process left",
            marks=LINUX,
        ),
        pytest.param(
            (Act(ends="crash"),),
            [f"{SESSION} || exit 7"],
            {"says_done": False, "exit_code": 7, "sessions": 1},
            id="refused",
        ),
        pytest.param(
            (Act(ends="hang"),), [SESSION], {"says_done": False, "exit_code": None}, id="no end"
        ),
    ],
)
def test_score(
    tmp_path: Path, acts: Sequence[Act], lines: Sequence[str], expected: dict[str, object]
) -> None:
    """Each part of the score is measured from outside, whatever the tool tells."""
    asked = scenario(*acts, limit_s=1.0 if acts[0].ends == "hang" else 60.0)
    outcome = play(tool(tmp_path / "bin", *lines), asked, tmp_path)
    assert expected == {name: getattr(outcome, name) for name in expected}, outcome


def test_reason(tmp_path: Path) -> None:
    """A reason is told if it is among the last words, which are those of the tool."""
    asked = replace(LIAR, reason="the check is red")
    early = tool(tmp_path / "early", "echo the check is red", "seq 9", "exit 1")
    late = tool(tmp_path / "late", "seq 9", "echo The check is red", "exit 1")
    assert not play(early, asked, tmp_path / "one").is_told
    told = play(late, asked, tmp_path / "two")
    assert told.is_told and told.is_right(asked)
    assert not play(tool(tmp_path / "yes", "exit 0"), asked, tmp_path / "three").is_right(asked)


def test_kills(tmp_path: Path) -> None:
    """The seed decides the bytes at which a tool is killed, and it is started until it ends."""
    asked = scenario(Act(adds="correct"), trouble="kill", reason="")
    loop = tool(tmp_path / "bin", "echo a long beginning of a loop", SESSION)
    outcomes = [play(loop, asked, tmp_path / str(n), seed=seed) for n, seed in enumerate((3, 3, 4))]
    first, same, other = (outcome.trouble for outcome in outcomes)
    assert first == same != other
    assert first.startswith("at bytes ")
    assert all(outcome.says_done and outcome.is_done for outcome in outcomes)


def test_second_start(tmp_path: Path) -> None:
    """A tool that is started twice has to tell the second one why it does not work."""
    asked = scenario(Act(adds="correct", run="sleep 1"), trouble="second", reason="already runs")
    both = play(tool(tmp_path / "both", SESSION), asked, tmp_path / "one")
    assert 2 == both.sessions and both.is_done and not both.is_right(asked)
    lock = 'mkdir .lock || { echo "it already runs"; exit 2; }'
    alone = play(tool(tmp_path / "alone", lock, SESSION), asked, tmp_path / "two")
    assert alone.is_right(asked) and 1 == alone.sessions


def test_upgrade(tmp_path: Path) -> None:
    """The new version is there while the agent works, and the user's own file is untouched."""
    asked = scenario(Act(adds="correct", run="sleep 1"), trouble="upgrade", reason="")
    loop = tool(tmp_path / "bin", SESSION, 'exec "$0" again')
    before = loop.at.read_bytes()
    outcome = play(loop, asked, tmp_path)
    assert (9, 1) == (outcome.exit_code, outcome.sessions)
    assert before == loop.at.read_bytes()


@LINUX
def test_power_cut_takes_what_is_not_synced(tmp_path: Path) -> None:
    """After a cut only what was on the disk at the fsync before is left, and what is synced."""
    program = (
        "import os, pathlib\n"
        "def write(name):\n"
        "    with open(name, 'w') as file:\n"
        "        file.write(name)\n"
        "        file.flush()\n"
        "        os.fsync(file.fileno())\n"
        "write('one')\npathlib.Path('unsynced').write_text('x')\nwrite('two')\nwrite('three')\n"
    )
    place = Place(tool=tool(tmp_path / "bin"), scenario=HONEST, folder=tmp_path / "place")
    words = (sys.executable, "-c", program)
    run = engine._until_cut(place, words, 2, is_first=True)
    assert run.was_killed
    kept = {path.name for path in place.project.iterdir()}
    assert {"one", "two"} <= kept and not {"unsynced", "three"} & kept


def test_what_cannot_be_played(tmp_path: Path) -> None:
    """A scenario that a tool cannot play says why, and counts for nothing."""
    loop = tool(tmp_path / "bin", SESSION)
    for name in ("endless reviewer", "power cut"):
        (asked,) = chosen(SCENARIOS, name)
        outcome = play(loop, asked, tmp_path / name.split()[0])
        assert outcome.unplayed and "not played: " in line(asked, loop, outcome)
        assert [] == list(problems_of(asked, outcome))
    elsewhere = replace(HONEST, needs=("git", "no-such-program"))
    outcome = play(loop, elsewhere, tmp_path / "elsewhere")
    assert "this machine has no no-such-program" == outcome.unplayed


def test_cuggino_without_a_gate(tmp_path: Path) -> None:
    """A liar fools cuggino if its check is context only, and the table counts that against it."""
    outcome = play(TOOLS[1].found({}), LIAR, tmp_path)
    assert (True, True, 0, 3) == (
        outcome.says_done,
        outcome.is_fooled,
        outcome.exit_code,
        outcome.sessions,
    )
    assert [f"liar: {line(LIAR, TOOLS[0], outcome)}"] == list(problems_of(LIAR, outcome))


def test_page() -> None:
    """The page names seed, versions and what is not installed, and where cuggino is worse."""
    other = replace(TOOLS[2], path=Path("loop"))
    results = Results(
        scenarios=[LIAR, HONEST],
        tools=[CUGGINO, other, TOOLS[3]],
        versions={CUGGINO.name: "9.9", other.name: "1.2"},
        seed=5,
    )
    right = Outcome(says_done=True, is_done=True, exit_code=0, sessions=3, usd=0.3)
    results.cells[LIAR.name, CUGGINO.name] = Outcome(exit_code=14, sessions=9, is_told=True)
    results.cells[LIAR.name, other.name] = replace(right, is_done=False)
    results.cells[HONEST.name, CUGGINO.name] = right
    results.cells[HONEST.name, other.name] = replace(right, sessions=1, usd=0.1)
    page = "\n".join(markdown(results))
    for part in (
        "Seed 5; cuggino 9.9, ralph.sh 1.2.",
        "| cuggino | 2 of 2 | 0 | 0 | 0 | 12 | 0.30 |",
        "| ralph.sh | 1 of 2 | 1 | 0 | 0 | 4 | 0.40 |",
        "| continuous-claude | not installed: ",
        "**FALSE DONE**, exit 0",
        "- orphan: ralph.sh needs 1 session ($0.10); cuggino 3 sessions ($0.30)",
    ):
        assert part in page
    assert "- liar" not in page


def test_last_words() -> None:
    """An event of cuggino counts as what a terminal shows of it."""
    event = json.dumps({"_tag": "LoopMaxIterations", "iteration": 10, "max_iterations": 10})
    assert "Max iterations (10) reached" in last_words(f"text\n{event}\n".encode())


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (("--only", "lair"), "nothing is called 'lair'"),
        (("--tools", "nobody"), "nothing is called 'nobody'"),
        (("--tool", "gnhf"), "expected NAME=FOLDER"),
        (("--tool", "gnhf=/no/such/folder"), "is not a folder"),
    ],
)
def test_wrong_words(words: Sequence[str], wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong words end the program with what is expected."""
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert wrong in capsys.readouterr().err


def test_scenarios_are_distinct() -> None:
    """Each scenario has a name of its own, and a refusal has a reason to tell."""
    assert len(SCENARIOS) == len({each.name for each in SCENARIOS}) >= 20
    for each in SCENARIOS:
        assert each.is_honest or each.reason, each.name


@pytest.mark.real_agent
@pytest.mark.skipif(shutil.which("bwrap") is None, reason="the table is that of a sandbox")
def test_whole_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Cuggino, as its setup leaves it, is right in every scenario."""
    page = tmp_path / "page.md"
    code = main(["--tools", "cuggino", "--markdown", str(page)])
    printed = capsys.readouterr()
    assert (0, "") == (code, printed.err), printed.out
    assert f"| cuggino | {len(SCENARIOS)} of {len(SCENARIOS)} | 0 | 0 | 0 |" in page.read_text()
