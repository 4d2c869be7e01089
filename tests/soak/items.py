"""The backlog of a night, and what the model does for its items."""

from __future__ import annotations

import random
import re
import shlex
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from cuggino.storage import Workspace, attempt_of
from tests.model_script import Message, ModelRequest, Reply, Text, Tool, usage_limit

KINDS = ("good", "shared", "left", "right", "red", "issue", "quota", "wait", "good")
"""What an item may be: its own file; a line where others add one, too; one of two that break the
check together; one whose check fails at first; with a question; at whose work the usage limit is
reached; whose agent waits for a file that somebody else makes."""

STEADY = "SOAK_STEADY"
"""The variable with which the check does not flake."""
CHECK = f"""\
if test -z "${STEADY}" && test "$(od -An -N1 -tu1 /dev/urandom)" -lt 24; then exit 9; fi
"""
CHECK += """\
! grep -rq '<<<<<<<' words lines 2>/dev/null || exit 1
test ! -s broken || exit 2
for left in words/*.left; do
    test ! -e "$left" || test ! -e "${left%.left}.right" || test -e "${left%.left}.both" || exit 3
done
"""
"""The check command: no conflict, nothing broken, and both of a pair only with a third file.

One of eleven times it fails for no reason."""

HANDS = ("hand-1", "hand-2", "hand-3", "hand-4")
"""The words that a run with hands writes in the end, the last one after the first."""
_TASKS = "\n".join(
    f"## Task {n}: {name}\n\nafter: {'1' if n == len(HANDS) else 'none'}\nfiles: words/{name}.txt\n"
    for n, name in enumerate(HANDS, 1)
)
_WRITE_TASK = r"""
word=$(sed -n 's/^## Task [0-9]*: //p' "$CUGGINO_SESSION_FILE"); echo "$word" > "words/$word.txt"
"""

_ROLE = re.compile(r"# Role: (\w+) agent(, resolving a conflict)?")
_SLOT = re.compile(r"/slot-(\d+)")
_PLAN = re.compile(r"\.cuggino/wip/[\w-]+\.planning/plan\.md")
_ITEM = re.compile(r"(?P<name>word-\d+)-(?P<kind>\w+)\.md")
_LIMIT_SECONDS = 45.0

_ADD_LINE = """
if git ls-files -u | grep -q .; then git show :2:lines :3:lines; else cat lines; fi >lines.new
echo {name} >>lines.new; sort -u lines.new >lines; rm lines.new
"""


def backlog(count: int) -> dict[str, str]:
    """Return the items, by file name, each with its text."""
    items = {}
    for number in range(1, count + 1):
        kind, name = KINDS[number % len(KINDS)], f"word-{number:03}"
        items[f"{name}-{kind}.md"] = f"# Write {name}\n\nThe word {name} ({kind}).\n"
    return items


def question(item: str) -> str:
    """Return the question that an item of the kind `issue` asks."""
    return f"How is {item.partition('-issue')[0]} spelled?"


@dataclass
class Model:
    """A model for both providers; it derives the work from an item's name and its slot."""

    slots: Path
    pace: float
    """Seconds from a request to its reply, on average."""
    seed: int
    replies: Counter[str] = field(default_factory=Counter)
    limits: set[str] = field(default_factory=set)
    """The items that have met the usage limit."""
    answered: set[str] = field(default_factory=set)
    """The items whose question was answered."""
    waiting: set[str] = field(default_factory=set)
    """The items whose agent waits, or has waited, for a file."""
    has_hands: bool = False
    """Whether the run with hands is at work, rather than the watch."""
    _lock: Lock = field(default_factory=Lock)

    def script(self, provider: str, bash: Callable[[str], Tool]) -> Callable[[ModelRequest], Reply]:
        """Return the model as a provider offers it, with its tool for commands."""
        chance = random.Random(f"{provider} {self.seed}")

        def reply(request: ModelRequest) -> Reply:
            said = f"{request.system_text}\n{request.messages_text}"
            role, slot = _ROLE.search(said), _SLOT.search(said)
            if role is None or slot is None:  # a title of the conversation, and the like
                return Message([Text("Words")])
            with self._lock:
                self.replies[f"{provider} {role[1]}"] += 1
                wait = chance.uniform(0.5, 1.5) * self.pace
            time.sleep(wait)
            if self.has_hands:
                return _with_hands(role[1], said, request, bash)
            return self._reply(provider, role[1], bool(role[2]), slot[1], request, bash)

        return reply

    def _reply(
        self,
        provider: str,
        role: str,
        resolves: bool,
        slot: str,
        request: ModelRequest,
        bash: Callable[[str], Tool],
    ) -> Reply:
        folder = self.slots / f"slot-{slot}"
        at_work = attempt_of(Workspace(folder)).readable()
        found = _ITEM.search(at_work.item) if at_work is not None else None
        if found is None:  # its attempt has been killed
            return Message([Text("There is nothing to do.")])
        name, kind, item = found["name"], found["kind"], found[0]
        first = request.turns == 0
        if role == "planning":
            if kind == "issue" and item not in self.answered:
                return _says("SPEC_ISSUE", f"# {question(item)}\n\nThe specification is silent.")
            plan = _PLAN.search(f"{request.system_text}\n{request.messages_text}")
            if plan is not None and not (folder / plan[0]).is_file():
                return Message([bash(f"echo '# Plan\n\n- [ ] {name}' > {plan[0]}")])
            return _says("PLAN_COMPLETE", "One task.")
        if role == "implementing":
            if kind == "quota" and provider == "claude" and self._meets_limit(item):
                return usage_limit(time.time() + _LIMIT_SECONDS)
            if kind == "wait" and not (folder / "ready" / name).exists():
                self.waiting.add(item)
                return _says("WAITING", f"file ready/{name}")
            # A killed agent has asked before, and did nothing, and one with a full disk little.
            written = folder / "words" / f"{name}.txt"
            if first or not written.exists() or written.read_text() != f"{name}\n":
                return Message([bash(_command(name, kind, folder, resolves))])
            return _says("DONE", f"feat: {name}")
        if first:
            return Message([bash("git log --oneline -3; ls words")])
        return _says("APPROVED", "As specified.")

    def make_ready(self) -> int:
        """Make the files that agents in slots wait for; return how many."""
        made = 0
        for folder in self.slots.glob("slot-*"):
            at_work = attempt_of(Workspace(folder)).readable()
            found = _ITEM.search(at_work.item) if at_work is not None else None
            if found is not None and found[0] in self.waiting:
                ready = folder / "ready" / found["name"]
                if not ready.exists():
                    ready.parent.mkdir(exist_ok=True)
                    ready.touch()
                    made += 1
        return made

    def _meets_limit(self, item: str) -> bool:
        with self._lock:
            is_new = item not in self.limits
            self.limits.add(item)
            return is_new


def _with_hands(
    role: str, said: str, request: ModelRequest, bash: Callable[[str], Tool]
) -> Message:
    """Return the model's part in a run with hands."""
    first = request.turns == 0
    if role == "planning":
        plan = _PLAN.search(said)
        if plan is not None and first:
            return Message([bash(f"printf %s {shlex.quote(_TASKS)} > {plan[0]}")])
        return _says("PLAN_COMPLETE", "Four tasks.")
    if role == "implementing":
        if request.turns < 2:  # the first one may have been killed before it had run
            return Message([bash(_WRITE_TASK)])
        return _says("DONE", "feat: a word")
    return Message([bash("git log --oneline -3; ls words")]) if first else _says("APPROVED", "Yes.")


def _command(name: str, kind: str, folder: Path, resolves: bool) -> str:
    """Return the command that does the work; files in the slot show whether it was begun before."""
    write = f"mkdir -p words && echo {name} > words/{name}.txt"
    match kind:
        case "shared":
            return write + _ADD_LINE.format(name=name)
        case "left" | "right":
            number = int(name.removeprefix("word-"))
            pair = f"words/pair-{number - (kind == 'right'):03}"
            other = "right" if kind == "left" else "left"
            both = f"; if test -e {pair}.{other}; then touch {pair}.both; fi"
            return f"{write}; touch {pair}.{kind}{both}"
        case "red" if not (folder / "words" / f"{name}.txt").exists() and not resolves:
            return f"{write}; echo {name} > broken"
        case "red":
            return f"{write}; : > broken"
        case _:
            return write


def _says(tag: str, text: str) -> Message:
    return Message([Text(f"<{tag}>{text}</{tag}>")])
