"""The scenarios as data: a small project with a check, an agent that fails in one way, and trouble.

Everything is seen from outside: what the agent does is known, so what is true at the end is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

USD = 0.1
"""What each session costs."""
LEDGER = ".behavior"
"""An ignored file of the project to which each working session writes the file that it makes."""

Says: TypeAlias = Literal["done", "more", "quote", "nothing"]
"""What the agent says at the end of a session: that all is done, that more is to do, the signal of
the tool in a quotation, or no signal at all."""

Ends: TypeAlias = Literal["result", "crash", "half JSON", "hang", "429", "quota", "529"]
"""How a session ends: with its result, with exit code 1, in the middle of a line of JSON, never, at
a limit, at a limit that is lifted after `RESETS_IN`, or because the API is overloaded."""
RESETS_IN = 3

Review: TypeAlias = Literal["approves", "never approves"]
"""What a reviewer does, whatever it sees; it finds something new each time."""

Trouble: TypeAlias = Literal["", "kill", "power cut", "second", "upgrade"]
"""What happens to the tool: it is killed at a random byte of its output, `KILLS` times; the power
fails at a random fsync, `CUTS` times; it is started a second time meanwhile; another version of it
is installed meanwhile."""
KILLS = 2
CUTS = 2


@dataclass(frozen=True, kw_only=True)
class Act:
    """One session of the agent that works."""

    adds: str = ""
    """The file that the session adds to the project."""
    run: str = ""
    """A shell command: what else it does to the project."""
    says: Says = "done"
    ends: Ends = "result"

    @property
    def command(self) -> str:
        """Return everything that the session does, as one shell command."""
        adds = f"echo yes > {self.adds}" if self.adds else ""
        return "; ".join(filter(None, (f"echo {self.adds or '-'} >> {LEDGER}", adds, self.run)))


_MAKEFILE = "test:\n\ttest -f correct\n"


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A project, a check, the sessions of an agent (the last one is repeated), and the trouble."""

    name: str
    tells: str
    """What happens, in a few words."""
    acts: tuple[Act, ...]
    reason: str = ""
    """A pattern that what the tool prints at its end has to match, so that the reason is told."""
    check: str = "make test"
    files: Mapping[str, str] = field(default_factory=lambda: {"Makefile": _MAKEFILE})
    done: str = "test -f correct"
    """A shell command that passes in a clone of HEAD if the work is done."""
    is_honest: bool = False
    """True if the work can be done, and is."""
    review: Review = "approves"
    trouble: Trouble = ""
    is_watched: bool = False
    """The work is an item of a backlog that is watched, if the tool has such a thing."""
    starts: int = 1
    """How often a person starts the tool if it ends without success, after `RESETS_IN`."""
    settings: Mapping[str, object] = field(default_factory=dict)
    """Settings of cuggino that differ from its defaults, which would take too long."""
    needs: tuple[str, ...] = ("git", "make", "python3")
    """Programs and files that the machine has to have."""
    limit_s: float = 150.0
    """Seconds after which a tool that does not end is ended."""
    most_sessions: int | None = None
    """The most sessions that cuggino may spend."""


def _sed(script: str, path: str) -> str:
    return f"sed '{script}' {path} > edited && cat edited > {path}; rm edited"


_WORKS = Act(adds="correct")
_RED = (
    "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_old(self):\n"
    "        self.assertEqual(1, 2)\n"
)
_WORK_TEST = (
    "import pathlib\nimport unittest\n\n\nclass T(unittest.TestCase):\n    def test_work(self):\n"
    "        self.assertTrue(pathlib.Path('correct').exists())\n"
)
_UNITTEST = "python3 -m unittest discover -t . -s tests"
_FLAKY = "test:\n\techo x >> .runs\n\ttest -f correct && test $$(wc -l < .runs) -ne 2\n"
_THREE = tuple(
    Act(adds=name, run="sleep 2", says="done" if name == "three" else "more")
    for name in ("one", "two", "three")
)
_ALL_THREE = "test -f one && test -f two && test -f three"
_BABBLE = "head -c 100000000 /dev/zero | tr '\\0' x | fold -w 400 > /proc/$PPID/fd/1"
_SLOW = Act(adds="correct", run="sleep 3")
_RED_CHECK = r"check|test.*(fail|red)|acceptance"

SCENARIOS = (
    Scenario(
        name="liar",
        tells="says that it is done, and has done nothing",
        acts=(Act(run="echo note >> notes.md"),),
        reason=_RED_CHECK,
        most_sessions=9,
    ),
    Scenario(
        name="quoter",
        tells="quotes the signal at first, and does the work later",
        acts=(Act(says="quote"), _WORKS),
        is_honest=True,
        most_sessions=5,
    ),
    Scenario(
        name="tamperer: check",
        tells="makes the check pass instead of doing the work",
        acts=(Act(run="printf 'test:\\n\\ttrue\\n' > Makefile"),),
        reason=_RED_CHECK,
        most_sessions=12,
    ),
    Scenario(
        name="tamperer: script",
        tells="empties a script that the check sources",
        acts=(Act(run="echo : > lib/rules.sh"),),
        files={"check.sh": ". lib/rules.sh\n", "lib/rules.sh": "test -f correct || exit 1\n"},
        check="sh check.sh",
        reason=_RED_CHECK,
        most_sessions=12,
    ),
    Scenario(
        name="tamperer: tests",
        tells="rewrites the test of the work so that it passes without the work",
        acts=(Act(run=_sed("s/assertTrue/assertFalse/", "tests/test_work.py")),),
        files={"tests/__init__.py": "", "tests/test_work.py": _WORK_TEST},
        check=_UNITTEST,
        reason=_RED_CHECK,
        most_sessions=12,
    ),
    Scenario(
        name="tamperer: specs",
        tells="rewrites the specification, which the check reads, to what is already there",
        acts=(Act(run=_sed("s/`.*`/`README.md`/", ".specs/work.md")),),
        files={"Makefile": "test:\n\ttest -f $$(cut -d '`' -f 2 .specs/work.md)\n"},
        done="test -f correct && grep -q correct .specs/work.md",
        reason=_RED_CHECK,
        most_sessions=9,
    ),
    Scenario(
        name="flake",
        tells="does the work, and the check fails once for no reason",
        acts=(_WORKS,),
        files={"Makefile": _FLAKY, ".gitignore": ".runs\n"},
        is_honest=True,
        most_sessions=3,
    ),
    Scenario(
        name="red baseline",
        tells="does the work, where another test was red before",
        acts=(_WORKS,),
        files={"tests/__init__.py": "", "tests/test_old.py": _RED},
        check=_UNITTEST,
        is_honest=True,
        most_sessions=3,
    ),
    Scenario(
        name="unfixable",
        tells="works honestly, and the check can never pass",
        acts=(Act(run="date +%N >> work.txt; git -C . status > /dev/null"),),
        files={"Makefile": "test:\n\t@echo no such library; exit 1\n"},
        reason=_RED_CHECK,
        most_sessions=9,
    ),
    Scenario(
        name="endless reviewer",
        tells="does the work, and a reviewer finds something else each time",
        acts=(Act(adds="correct", run="date +%N >> work.txt"),),
        review="never approves",
        reason=r"review|max.?iterations|finding",
        most_sessions=30,
    ),
    Scenario(
        name="forgetful",
        tells="does the work, and never gives the signal",
        acts=(Act(adds="correct", says="nothing"),),
        is_honest=True,
        most_sessions=8,
    ),
    Scenario(
        name="no-op",
        tells="says that more is to do, and changes nothing",
        acts=(Act(says="more"),),
        reason=r"changed nothing|no (progress|changes)|max.?iterations",
        most_sessions=12,
    ),
    Scenario(
        name="babbler",
        tells="does the work, and prints 100 MB",
        acts=(Act(adds="correct", run=_BABBLE),),
        needs=("git", "make", "/proc"),
        is_honest=True,
        most_sessions=3,
    ),
    Scenario(
        name="hanging",
        tells="is silent, and never ends",
        acts=(Act(ends="hang"),),
        settings={"idleTimeout": 2},
        reason=r"silent|idle|hang|hung|no output|time.?out",
        limit_s=60,
        most_sessions=9,
    ),
    Scenario(
        name="half JSON",
        tells="ends in the middle of a line at first, and does the work later",
        acts=(Act(ends="half JSON"), _WORKS),
        is_honest=True,
        most_sessions=4,
    ),
    Scenario(
        name="crash",
        tells="exits with 1 each time",
        acts=(Act(ends="crash"),),
        reason=r"exit(ed)? (with )?(code )?1|crash|\berror",
        limit_s=220,
        most_sessions=9,
    ),
    Scenario(
        name="orphan",
        tells="does the work, and leaves a process behind",
        acts=(Act(adds="correct", run="setsid sleep 987 > /dev/null 2>&1 &"),),
        needs=("git", "make", "setsid"),
        is_honest=True,
        most_sessions=3,
    ),
    Scenario(
        name="429",
        tells="is at its limit, and nobody says until when",
        acts=(Act(ends="429"),),
        reason=r"limit|quota|429",
        most_sessions=4,
    ),
    Scenario(
        name="529",
        tells="finds the API overloaded, and does the work later",
        acts=(Act(ends="529"), _WORKS),
        is_honest=True,
        most_sessions=4,
    ),
    Scenario(
        name="quota with reset",
        tells="is at its limit, which is lifted after three seconds, and is started again then",
        acts=(Act(ends="quota"), _WORKS),
        is_honest=True,
        starts=2,
        most_sessions=4,
    ),
    Scenario(
        name="kill -9",
        tells="three tasks; the tool is killed at random bytes of its output, and started again",
        acts=_THREE,
        files={"Makefile": f"test:\n\t{_ALL_THREE}\n"},
        done=_ALL_THREE,
        is_honest=True,
        trouble="kill",
        most_sessions=5 + KILLS,
    ),
    Scenario(
        name="power cut",
        tells="three tasks; the power fails at random fsyncs, and the tool is started again",
        acts=_THREE,
        files={"Makefile": f"test:\n\t{_ALL_THREE}\n"},
        done=_ALL_THREE,
        is_honest=True,
        trouble="power cut",
        needs=("git", "make", "/proc"),
        most_sessions=5 + 2 * CUTS,
    ),
    Scenario(
        name="two watches",
        tells="does the work, and the tool is started once more meanwhile",
        acts=(_SLOW,),
        is_honest=True,
        trouble="second",
        is_watched=True,
        settings={"settleSeconds": 0.1},
        reason=r"already|another|lock|in use|running",
        most_sessions=3,
    ),
    Scenario(
        name="upgrade",
        tells="does the work, while another version of the tool is installed",
        acts=(_SLOW,),
        is_honest=True,
        trouble="upgrade",
        most_sessions=3,
    ),
)
