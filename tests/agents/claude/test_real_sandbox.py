"""The sandbox of the real Claude Code CLI, as it is ordered for a session."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cuggino.config import Config, configured_policy, configured_sandbox
from cuggino.security.sandbox import CACHES
from tests.agents.guarded import SPEC, Guarded, bash, claude
from tests.model_server import Tool
from tests.real_claude import needs_sandbox

__all__ = ["claude"]

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


def sandboxed(claude: Guarded, *turns: Tool) -> list[str]:
    """What the tools answered in a session as a run would start it.

    But that no scratch may be written, as the project of the test is in that folder itself.
    """
    config = Config()
    policy = configured_policy(config, "implementing", project=claude.project)
    sandbox = configured_sandbox(config, policy)
    assert sandbox is not None
    sandbox = sandbox._replace(allow_write=CACHES)
    done = claude.run(*turns, policy=policy, sandbox=sandbox)
    assert done.error is None
    return [result.output for result in done.results]


def test_where_programs_write(claude: Guarded, tmp_path: Path) -> None:
    """A program that no guard looks into writes in the project and nowhere else."""
    subprocess.run(["git", "init", "-q", str(claude.project)], check=True)
    (claude.project / ".cuggino").mkdir()
    (claude.project / "write.py").write_text(WRITER)
    outside = tmp_path / "outside.txt"
    (claude.home / ".npm").mkdir(parents=True)
    # The paths stand in a file, where the guard does not see them.
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


def test_it_cannot_be_left(claude: Guarded) -> None:
    """A call that asks to run outside of it is denied; another host is refused."""
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


def test_commits_can_be_made(claude: Guarded) -> None:
    """An agent can commit all there is, also where protected names show up as devices."""
    git = ["git", "-C", str(claude.project)]
    subprocess.run(["git", "init", "-q", str(claude.project)], check=True)
    for key, value in (("user.name", "A"), ("user.email", "a@example.com")):
        subprocess.run([*git, "config", key, value], check=True)
    sandboxed(claude, bash("git add --all && git commit -qm first"))
    log = [*git, "log", "--format=%s", "--name-only"]
    done = subprocess.run(log, capture_output=True, text=True, check=True)
    assert ["first", "", ".specs/task.md", "app.py"] == done.stdout.splitlines()
