"""A watch of one's own: three items at once, each in a slot; all land through one gate.

Conflicts go back to agents. `runtime.watch(slots=2)` does the same, resumes interrupted work, tries
failed items again, and waits for new ones.
"""

import subprocess
from pathlib import Path

from reactivex import defer, just

import cuggino
from cuggino.agents.scripted import ScriptedAgent
from cuggino.events import WatchLanded
from cuggino.loops import pool

ITEMS = ["001-english.md", "002-french.md", "003-german.md"]


def git(*words: str) -> str:
    """Run git in the project."""
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout


Path(".specs").mkdir()
Path(".specs/greetings.md").write_text("Each language has a greeting.\n")
Path(".gitignore").write_text(".cuggino\n")
Path(".cuggino/backlog").mkdir(parents=True)
for name in ITEMS:
    Path(".cuggino/backlog", name).write_text(f"Add the greeting of {name}.\n")
git("init", "--quiet")
git("config", "user.name", "Ada")
git("config", "user.email", "ada@example.org")
git("add", ".gitignore", ".specs")
git("commit", "--quiet", "-m", "Begin")

runtime = cuggino.Runtime.live(
    cwd=".",
    config=cuggino.Config(commit=True, check_command="ls greeting-*.txt"),
    agent=ScriptedAgent(Path(__file__).with_name("slots.toml")),
)

backlog = Path(".cuggino/backlog")
watch = pool(
    defer(lambda _: just(sorted(file.name for file in backlog.iterdir()))),
    3,
    attempt=lambda start: runtime.attempt(
        start.name, slot=start.slot, number=start.number, returned=start.returned
    ),
    land=lambda landing: runtime.land(landing.candidate, returns=landing.returns),
)
landed = [event.filename for event in cuggino.iterate(watch) if isinstance(event, WatchLanded)]

for name in sorted(landed):
    print("landed:", name)
print(len(list(Path().glob("greeting-*.txt"))), "files")

# prints:
# landed: 001-english.md
# landed: 002-french.md
# landed: 003-german.md
# 3 files
