"""The conformance table of the protocol's programs in the help."""

from __future__ import annotations

from pathlib import Path

import cuggino_cli
from cuggino.testing.conformance import rules_of
from tests.agents.acp.test_real import SUITES

HELP = Path(cuggino_cli.__file__).parent / "help" / "providers.md"


def test_conformance_in_the_help() -> None:
    """The help counts the rules of each suite from which a program is not exempt."""
    text = HELP.read_text(encoding="utf-8")
    for name, suites in SUITES.items():
        counts = [(len(rules_of(one)) - len(one.exempt), len(rules_of(one))) for one in suites]
        row = " | ".join([f"`{name}`", *(f"{kept} of {all_}" for kept, all_ in counts)])
        assert f"| {row} |" in text, row
