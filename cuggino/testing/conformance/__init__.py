"""Rules that every agent must keep, as test suites and without pytest.

- `AgentConformance`: the input and the events of a session
- `FailureConformance`: failures and disposal
- `GuardConformance`: enforcement of a policy

With pytest, a subclass inherits the rules, each a test, and provides the arena::

    class TestMine(AgentConformance):
        @pytest.fixture
        def arena(self, tmp_path: Path) -> MyArena:
            return MyArena(tmp_path)

Without, `try_agent(MyArena)` returns a verdict for each rule.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from cuggino.testing.conformance.agent import AgentConformance
from cuggino.testing.conformance.arena import PlayArena
from cuggino.testing.conformance.failures import FailureConformance
from cuggino.testing.conformance.guard import GuardConformance
from cuggino.testing.conformance.rules import Rules
from cuggino.testing.conformance.verdicts import Verdict, verdict_of

__all__ = [
    "SUITES",
    "AgentConformance",
    "FailureConformance",
    "GuardConformance",
    "Verdict",
    "rules_of",
    "try_agent",
]

SUITES: tuple[type[Rules], ...] = (AgentConformance, FailureConformance, GuardConformance)
"""All suites."""


def rules_of(suite: type[Rules] = AgentConformance) -> tuple[str, ...]:
    """Return the methods of the suite that are rules."""
    names = [name for base in reversed(suite.__mro__) for name in vars(base)]
    return tuple(dict.fromkeys(name for name in names if name.startswith("test_")))


def try_agent(
    arena: Callable[[Path], PlayArena], suite: type[Rules] = AgentConformance
) -> tuple[Verdict, ...]:
    """Check an agent against the rules of a suite; `arena` makes an arena in an empty folder.

    Errors of the arena other than `CannotPlay` are raised here.
    """
    fresh = type(suite.__name__, (suite,), {})  # shares no sessions with others
    verdicts = []
    with tempfile.TemporaryDirectory(prefix="cuggino-conformance-") as folder:
        for number, name in enumerate(rules_of(suite)):
            place = Path(folder, str(number)).resolve()
            place.mkdir()
            check = partial(getattr(fresh(), name), arena(place))
            verdicts.append(verdict_of(name.removeprefix("test_"), check))
    return tuple(verdicts)
