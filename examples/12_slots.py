"""Three items, two at a time, each in its own slot; all land through one gate.

`runtime.watch(slots=2)` does the same, resumes interrupted work, and sends conflicts back to
agents.
"""

import subprocess
from pathlib import Path

from reactivex import from_iterable

import cuggino
from cuggino.agents.scripted import ScriptedAgent
from cuggino.events import WatchCandidate, WatchFollowed, WatchItemCompleted, WatchLanded
from cuggino.operators import merge_at_most

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

begun = [runtime.attempt(name, slot=slot) for slot, name in enumerate(ITEMS, start=1)]
attempts = from_iterable(begun).pipe(merge_at_most(2))
candidates = [event for event in cuggino.iterate(attempts) if isinstance(event, WatchCandidate)]

for candidate in sorted(candidates, key=lambda each: each.filename):
    for event in cuggino.iterate(runtime.land(candidate)):
        match event:
            case WatchLanded(filename=name) | WatchItemCompleted(filename=name):
                print(f"{event.tag}: {name}")
            case WatchFollowed():
                print(f"{event.tag}: {len(list(Path().glob('greeting-*.txt')))} files")
            case _:
                pass

# prints:
# WatchLanded: 001-english.md
# WatchItemCompleted: 001-english.md
# WatchFollowed: 1 files
# WatchLanded: 002-french.md
# WatchItemCompleted: 002-french.md
# WatchFollowed: 2 files
# WatchLanded: 003-german.md
# WatchItemCompleted: 003-german.md
# WatchFollowed: 3 files
