"""Commands in a subfolder of a project, and what a run works on."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from cuggino.files import find_project
from cuggino_cli.main import main
from tests.cli.cli import Cli
from tests.cli.rounds import APPROVES, PLANS, implements

GOAL = "add a login page"


@pytest.fixture
def working(ready: Path) -> Path:
    """A project whose scripted agent gets everything approved, as the working directory."""
    (ready / "scenario.toml").write_text(PLANS + implements() + APPROVES, encoding="utf-8")
    (ready / "src" / "deep").mkdir(parents=True)
    return ready


def focus_of(project: Path) -> str:
    """Return the focus in the journal of the only run."""
    (journal,) = (project / ".cuggino" / "journal").glob("*.jsonl")
    lines = map(json.loads, journal.read_text(encoding="utf-8").splitlines())
    events = (line.get("event", line) for line in lines)
    return str(next(event["focus"] for event in events if event.get("_tag") == "RunStarted"))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((GOAL,), GOAL),
        (("-f", GOAL), GOAL),
        (("-",), f"{GOAL} from a pipe"),
        (("-f", "-"), f"{GOAL} from a pipe"),
        (("@todo.md",), f"The file `src/deep/todo.md`, with this content:\n\n{GOAL}"),
    ],
)
def test_run_in_a_subfolder(
    words: tuple[str, ...],
    expected: str,
    working: Path,
    monkeypatch: pytest.MonkeyPatch,
    cli: Cli,
) -> None:
    """A run works in the project above; the files that are named are those of the subfolder."""
    deep = working / "src" / "deep"
    (deep / "todo.md").write_text(GOAL, encoding="utf-8")
    piped = io.TextIOWrapper(io.BytesIO(f"{GOAL} from a pipe".encode()))
    monkeypatch.setattr("sys.stdin", piped)
    monkeypatch.chdir(deep)
    assert f"cuggino: in the project {working}" in cli.err(
        "run", *words, "--agent", "scripted:../../scenario.toml", code=0
    )
    assert expected == focus_of(working)
    assert [deep / "todo.md"] == list(deep.iterdir())


def test_a_piped_text_names_no_file(working: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another program writes is a text, even if it begins like the name of a file."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"@scenario.toml")))
    assert 0 == main(["run", "-"])
    assert "@scenario.toml" == focus_of(working).strip()


def test_other_commands(working: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    """Commands that show, add or check something do so for the project above."""
    monkeypatch.chdir(working / "src")
    assert 0 == main(["backlog", "add", "Login"])
    assert ["001-login.md"] == [path.name for path in (working / ".cuggino/backlog").iterdir()]
    cli.printed()
    assert "001-login.md" in cli("backlog", "list")
    assert 3 == main(["status"])
    assert not (working / "src" / ".cuggino").exists()


@pytest.mark.parametrize(
    ("made", "here", "expected"),
    [
        (("p/.cuggino.json",), "p/a/b", "p"),
        (("p/.cuggino/x",), "p/a", "p"),
        (("p/.specs/x", "p/a/.specs/x"), "p/a/b", "p/a"),
        (("p/.cuggino.json", "p/a/.git/x"), "p/a/b", "p/a/b"),
        (("p/.cuggino.json", "p/.git/x"), "p/a/b", "p"),
        (("home/.cuggino.json",), "home/a", "home/a"),
        (("home/.cuggino.json",), "home", "home"),
        (("open/.cuggino.json",), "open/a", "open/a"),
        ((), "p/a", "p/a"),
    ],
)
def test_find_project(
    made: tuple[str, ...],
    here: str,
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The nearest project counts, up to the repository, the home folder and shared folders."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / here).mkdir(parents=True)
    for name in made:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}", encoding="utf-8")
    if (tmp_path / "open").exists():
        (tmp_path / "open").chmod(0o777)
    assert tmp_path / expected == find_project(tmp_path / here)
