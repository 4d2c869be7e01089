"""The sandbox of the real Claude Code CLI, as configured for a session."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cuggino.config import Config, configured_policy, configured_sandbox
from cuggino.events import ToolResult
from tests.model_server import Tool
from tests.real_claude import Claude, bash, needs_sandbox
from tests.real_program import SPEC

pytestmark = pytest.mark.real_agent

WRITER = """
import sys
for path in sys.argv[1:]:
    try:
        with open(path, "w") as file:
            file.write("written")
        print("wrote", path)
    except OSError:
        print("could not", path)
"""


@pytest.fixture(autouse=True)
def _sandbox() -> None:
    needs_sandbox()


def sandboxed(claude: Claude, *turns: Tool) -> list[str]:
    """Return the tool results of a session with the sandbox of a normal run."""
    config = Config()
    policy = configured_policy(config, "implementing", project=claude.project)
    sandbox = configured_sandbox(config, policy)
    assert sandbox is not None
    done = claude.run(*turns, guard=policy, sandbox=sandbox)
    assert done.error is None
    return [result.output for result in done.of(ToolResult)]


def test_where_programs_write(claude: Claude, tmp_path: Path) -> None:
    """An uninspected program can write in the project only."""
    subprocess.run(["git", "init", "-q", str(claude.project)], check=True)
    (claude.project / ".cuggino").mkdir()
    (claude.project / "write.py").write_text(WRITER)
    outside = tmp_path / "outside.txt"
    (claude.home / ".npm").mkdir(parents=True)
    # The paths are in a file, which the guard does not inspect.
    places = {
        str(claude.project / "new.txt"): True,
        str(claude.home / ".npm" / "cached"): True,
        str(outside): False,
        str(claude.project / ".specs" / "task.md"): False,
        str(claude.project / ".cuggino" / "lock"): False,
        str(claude.project / ".cuggino.json"): False,
        str(claude.project / ".git" / "hooks" / "post-commit"): False,
        str(claude.project / ".git" / "config"): False,
    }
    (claude.project / "places.txt").write_text("\n".join(places))
    (said,) = sandboxed(claude, bash("xargs python3 write.py < places.txt"))
    assert [("wrote " if may else "could not ") + place for place, may in places.items()] == [
        line for line in said.splitlines() if line.startswith(("wrote", "could not"))
    ]
    assert ("written", None, SPEC) == (
        claude.read("new.txt"),
        claude.read(".cuggino.json"),
        claude.read(".specs/task.md"),
    )
    assert not outside.exists()
    left = {path.name for path in claude.project.iterdir()} - {".claude"}
    assert {".git", ".cuggino", ".specs", "app.py", "write.py", "places.txt", "new.txt"} == left


def test_the_sandbox_cannot_be_disabled(claude: Claude) -> None:
    """A call that requests to run unsandboxed is denied; other hosts are refused."""
    reach = "import urllib.request as r; r.urlopen('https://example.com')"
    (claude.project / "reach.py").write_text(reach)
    out, reached = sandboxed(
        claude,
        Tool("Bash", {"command": "echo out > out.txt", "dangerouslyDisableSandbox": True}),
        bash("python3 reach.py 2>&1 | tail -n 1"),
    )
    assert "Commands stay in the sandbox" in out
    assert claude.read("out.txt") is None
    assert "403" in reached or "denied" in reached.lower() or "refused" in reached.lower()


def test_commits_can_be_made(claude: Claude) -> None:
    """An agent can commit everything, even if protected names appear as devices."""
    git = ["git", "-C", str(claude.project)]
    subprocess.run(["git", "init", "-q", str(claude.project)], check=True)
    for key, value in (("user.name", "A"), ("user.email", "a@example.com")):
        subprocess.run([*git, "config", key, value], check=True)
    sandboxed(claude, bash("git add --all && git commit -qm first"))
    log = [*git, "log", "--format=%s", "--name-only"]
    done = subprocess.run(log, capture_output=True, text=True, check=True)
    assert ["first", "", ".specs/task.md", "app.py"] == done.stdout.splitlines()


def test_sandboxes_side_by_side(claude: Claude, tmp_path: Path) -> None:
    """Sessions in folders next to each other do not disturb each other's sandboxes."""
    others = [Claude(claude.program, tmp_path / n / "project", tmp_path / n / "home") for n in "ab"]
    for other in others:
        other.write(".specs/task.md", SPEC)
    calls = [bash(f"echo {number}") for number in range(8)]
    with ThreadPoolExecutor() as pool:
        results = list(pool.map(lambda each: sandboxed(each, *calls), [claude, *others]))
    assert [[str(number) for number in range(8)]] * 3 == results
