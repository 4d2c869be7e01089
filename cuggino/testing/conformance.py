"""The rules that every agent is held to, and how to try one's own.

With pytest, a class of one's own inherits the rules, each a test, and gives the arena::

    class TestMine(AgentConformance):
        @pytest.fixture
        def arena(self, tmp_path):
            return MyArena(tmp_path)

Without, `try_agent(MyArena)` gives a verdict for each rule.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from unittest import SkipTest

from cuggino.testing.conformance_arena import Arena
from cuggino.testing.conformance_asking import AskingRules
from cuggino.testing.conformance_ending import EndingRules
from cuggino.testing.conformance_failures import FailureRules
from cuggino.testing.conformance_stream import StreamRules


class AgentConformance(StreamRules, AskingRules, FailureRules, EndingRules):
    """Whether an agent keeps what `LlmAgent` promises: some forty rules, by about 25 sessions.

    Each rule is a method that takes an `Arena` of its own; what it says is its docstring. A rule
    for what the agent does not claim (see `Capabilities`), or for what the arena cannot play, is
    skipped with the reason. Rules that only look at a session share it, once for
    each subclass.

    It stands on POSIX systems alone, as processes and signals do that it looks at.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What came of one rule."""

    rule: str
    """Its method, without `test_`."""
    outcome: Literal["passed", "failed", "skipped"]
    words: str = ""
    """Why, if it has not passed; of one that failed the first line is what it says."""


def rules_of(suite: type[AgentConformance] = AgentConformance) -> tuple[str, ...]:
    """The methods of the suite that are rules."""
    names = [name for base in reversed(suite.__mro__) for name in vars(base)]
    return tuple(dict.fromkeys(name for name in names if name.startswith("test_")))


def try_agent(
    arena: Callable[[Path], Arena], suite: type[AgentConformance] = AgentConformance
) -> tuple[Verdict, ...]:
    """Hold an agent to all rules, one after the other; `arena` makes an arena in an empty folder.

    What the arena raises beside `CannotPlay` is raised here.
    """
    fresh = type(suite.__name__, (suite,), {})  # which shares no session with others
    verdicts = []
    with tempfile.TemporaryDirectory(prefix="cuggino-conformance-") as folder:
        for number, name in enumerate(rules_of(suite)):
            place = Path(folder, str(number)).resolve()
            place.mkdir()
            verdicts.append(_verdict(fresh, name, arena(place)))
    return tuple(verdicts)


def _verdict(suite: type[AgentConformance], name: str, arena: Arena) -> Verdict:
    rule = name.removeprefix("test_")
    try:
        getattr(suite(), name)(arena)
    except SkipTest as reason:
        return Verdict(rule=rule, outcome="skipped", words=str(reason))
    except AssertionError as error:
        return Verdict(rule=rule, outcome="failed", words=str(error))
    return Verdict(rule=rule, outcome="passed")
