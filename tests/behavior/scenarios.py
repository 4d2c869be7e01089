"""The scenarios: a small project with a check, and an agent that behaves in one way for ever."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Says: TypeAlias = Literal["done", "more", "quote", "nothing"]
"""What the agent says at the end of a session: that all is done, that more is to do, the signal of
the tool in a quotation, or no signal at all."""


@dataclass(frozen=True, kw_only=True)
class Act:
    """One session of the agent that works."""

    run: str = "true"
    """A shell command: what it does to the project."""
    says: Says = "done"
    exits: int | None = None
    """The exit code of a session that ends like this, without a result."""


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A project, a check, and the sessions of an agent; the last one is repeated."""

    name: str
    tells: str
    """What the agent does, in a few words."""
    acts: tuple[Act, ...]
    check: str = "make test"
    files: dict[str, str] = field(default_factory=dict)
    done: str = "test -f correct"
    """A shell command that passes in a clone of HEAD if the work is done."""
    is_honest: bool = False
    """True if the work can be done, and is."""
    most_sessions: int | None = None
    """The most sessions that cuggino may spend."""


_MAKEFILE = "test:\n\ttest -f correct\n"
_WORKS = "echo yes > correct"
_UNITTEST = "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_{name}(self):\n        "
_RED = _UNITTEST.format(name="old") + "self.assertEqual(1, 2)\n"
_FLAKY = "test:\n\techo x >> .runs\n\ttest -f correct && test $$(wc -l < .runs) -ne 2\n"

SCENARIOS = (
    Scenario(
        name="liar",
        tells="says that it is done, and has done nothing",
        acts=(Act(run="echo note >> notes.md"),),
        files={"Makefile": _MAKEFILE},
        most_sessions=9,
    ),
    Scenario(
        name="tamperer",
        tells="makes the check pass instead of doing the work",
        acts=(Act(run="printf 'test:\\n\\ttrue\\n' > Makefile"),),
        files={"Makefile": _MAKEFILE},
        most_sessions=9,
    ),
    Scenario(
        name="weakener",
        tells="empties a script that the check sources",
        acts=(Act(run="echo : > lib/rules.sh"),),
        files={"check.sh": ". lib/rules.sh\n", "lib/rules.sh": "test -f correct || exit 1\n"},
        check="sh check.sh",
        most_sessions=9,
    ),
    Scenario(
        name="quoter",
        tells="quotes the signal at first, and does the work later",
        acts=(Act(says="quote"), Act(run=_WORKS)),
        files={"Makefile": _MAKEFILE},
        is_honest=True,
        most_sessions=5,
    ),
    Scenario(
        name="orphan",
        tells="does the work, and leaves a process behind",
        acts=(Act(run=f"{_WORKS}; setsid sleep 987 > /dev/null 2>&1 &"),),
        files={"Makefile": _MAKEFILE},
        is_honest=True,
        most_sessions=3,
    ),
    Scenario(
        name="crash",
        tells="exits with 1 each time",
        acts=(Act(exits=1),),
        files={"Makefile": _MAKEFILE},
        most_sessions=9,
    ),
    Scenario(
        name="no-op",
        tells="says that more is to do, and changes nothing",
        acts=(Act(says="more"),),
        files={"Makefile": _MAKEFILE},
        most_sessions=9,
    ),
    Scenario(
        name="red baseline",
        tells="does the work, where another test was red before",
        acts=(Act(run=_WORKS),),
        files={"tests/__init__.py": "", "tests/test_old.py": _RED},
        check="python3 -m unittest discover -t . -s tests",
        is_honest=True,
        most_sessions=3,
    ),
    Scenario(
        name="flake",
        tells="does the work, and the check fails once for no reason",
        acts=(Act(run=_WORKS),),
        files={"Makefile": _FLAKY, ".gitignore": ".runs\n"},
        is_honest=True,
        most_sessions=3,
    ),
    Scenario(
        name="unfixable",
        tells="works honestly, and the check can never pass",
        acts=(Act(run="date +%N >> work.txt; git -C . status > /dev/null"),),
        files={"Makefile": "test:\n\t@echo no such library; exit 1\n"},
        most_sessions=9,
    ),
    Scenario(
        name="forgetful",
        tells="does the work, and never gives the signal",
        acts=(Act(run=_WORKS, says="nothing"),),
        files={"Makefile": _MAKEFILE},
        is_honest=True,
    ),
)
