"""The guard of a session of the Agent Client Protocol, at the level `asked`.

The program decides which calls it asks about: a request for permission is a dialog, not a boundary.
So this guard is weaker than one that sees every call, and its level is called `asked`:

- The mode in which the program asks is set, and read back, before the first prompt. If the mode
  changes later, the session ends.
- The only approval ever given is "allow once", as "always" would silence later requests. A request
  that cannot be checked is denied: an unknown tool, an unreported command, a choice of answers.
- A call that ran without asking is checked afterwards. If the policy forbids it, the session ends
  with `GuardNotLive`, and the stage is verified as usual.
- If the project has settings that make the program stop asking, the session does not start.

If the machine supports it, the role's sandbox confines the whole program, asked or not. The last
two points do not apply then: the operating system controls what the program does without asking.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from cuggino.agents.acp.calls import denial, verdict_on
from cuggino.agents.base.calls import Call
from cuggino.agents.base.guard import ATTENDED, NOT_JUDGED, Guard, try_in_process
from cuggino.agents.base.watch import Verdict
from cuggino.agents.base.wire import Json
from cuggino.agents.profiles import Profile
from cuggino.errors import GuardNotLive
from cuggino.guard import READERS


def check_settings(profile: Profile, cwd: Path) -> None:
    """Check that nothing in the project makes the program stop asking.

    Raises:
        GuardNotLive: the project has such settings, or the program is not known to ask.
    """
    if not profile.asks:
        raise GuardNotLive(
            f"acp:{profile.name} is not known to ask before its calls",
            hint='if it does, set "asks": true and its "mode" in .cuggino.json, use a machine with '
            'a sandbox, or turn the guard off with "guard": "off"',
        )
    for name in profile.silencing:
        if os.path.lexists(cwd / name):
            raise GuardNotLive(
                f"{name} can make {profile.command[0]} stop asking before its calls",
                hint="remove it, or use a machine with a sandbox (see `cuggino help sandbox`)",
            )


@dataclass(frozen=True, kw_only=True)
class Judge:
    """Judges the calls of one session.

    Without a `guard` the verdicts depend on `unattended` and `allowed_tools` alone.
    """

    cwd: Path
    unattended: bool
    """True if allowed actions run without asking a person."""
    guard: Guard | None = None
    allowed_tools: tuple[str, ...] = ()
    own_files: tuple[str, ...] = ()
    """Files that the program itself writes without asking, as patterns for whole paths."""

    def try_out(self) -> None:
        """Check a call that must be denied and one that must be allowed.

        Raises:
            GuardNotLive: one of the answers is wrong.
        """
        if self.guard is not None:
            try_in_process(self.guard)

    def verdict(self, call: Call, call_id: str, has_run: bool) -> Verdict:
        """Return the verdict on a call; one that cannot be judged is denied. Never raises."""
        try:
            return verdict_on(call, call_id, self._judged(call, call_id, has_run))
        except Exception:
            return denial(call, call_id, NOT_JUDGED)

    def _judged(self, call: Call, call_id: str, has_run: bool) -> Json:
        if not (self.unattended or call.tool in READERS or call.is_listed(self.allowed_tools)):
            return {"decision": "deny", "reason": ATTENDED}
        if self.guard is None or (has_run and not call.unknown and self._is_own(call)):
            return {"decision": "allow"}
        return self.guard.judge.verdict(call, call_id=call_id, cwd=str(self.cwd))

    def _is_own(self, call: Call) -> bool:
        """Return whether the call writes one of the program's own files."""
        if call.tool not in ("Edit", "Write"):
            return False
        path = os.path.realpath(self.cwd / str(call.input.get("file_path")))
        return any(fnmatchcase(path, pattern) for pattern in self.own_files)
