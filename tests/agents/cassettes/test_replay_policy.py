"""Recorded calls under the policy of a replay."""

from __future__ import annotations

from pathlib import Path

from cuggino.agents.cassettes.masking import mark
from cuggino.agents.cassettes.matching import PolicyCheck
from cuggino.agents.cassettes.places import Places
from cuggino.events import ToolCall, ToolResult
from cuggino.guard.policy import Policy
from cuggino.testing import Marbles
from tests.agents.cassettes.recorded import options, recorded, sessions


def test_a_masked_secret_in_a_command(tmp_path: Path) -> None:
    """The mask of a secret contains spaces but counts as one word of the command."""
    command = f"TOKEN={mark('github token')} echo hi"
    call = ToolCall(name="Bash", input={"command": command}, id="c")
    t = Marbles(c=call, r=ToolResult(name="c", output="hi"))
    recorded(tmp_path / "c", tmp_path, t, "cr|")
    (session,) = sessions(tmp_path / "c")
    given = options(tmp_path, guard=Policy(project=str(tmp_path), level="full"))
    check = PolicyCheck(session, given, Places.of(given), same_version=False)
    assert check.complaint(call) is None
    other = ToolCall(name="Bash", input={"command": f"{command}; shutdown"}, id="c")
    assert "is denied now" in (check.complaint(other) or "")
