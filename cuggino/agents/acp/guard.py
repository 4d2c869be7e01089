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
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from cuggino.agents.acp.profiles import Profile
from cuggino.agents.acp.tools import Call
from cuggino.agents.acp.wire import Question, Verdict
from cuggino.agents.base.guard import NOT_JUDGED, Guard, not_live
from cuggino.agents.base.wire import Json, text_or_none
from cuggino.errors import GuardNotLive
from cuggino.guard import READERS, hook

_ATTENDED = "This session is read-only: nobody is there to ask. Mention that in your report."
_CHOICE = "Nobody is there to choose between its answers: do without"
_OUT_OF_SCOPE = (
    "Reading outside of the project is not allowed: what you need must be in the project, or the "
    "user has to allow its folder"
)


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
    """Answers the questions of one session.

    Without a `guard` the answers depend on `unattended` and `allowed_tools` alone.
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
        if self.guard is None:
            return
        try:
            canary = self._answer(self.guard, {"hook_event_name": "SessionStart"})["canary"]
        except Exception as error:
            raise not_live(f"{type(error).__name__}: {error}") from error
        if canary != hook.LIVE:
            raise not_live(str(canary))

    def verdict(self, question: Question) -> Verdict:
        """Return the answer; a call that cannot be judged is denied. Never raises."""
        call = question.call
        if question.request is not None and (call.refused or question.is_choice):
            return Verdict(reason=call.refused or _CHOICE)
        if not self.unattended and not self._is_unasked(call):
            return Verdict(reason=_ATTENDED)
        if self.guard is None:
            return Verdict()
        if call.unknown:
            return Verdict(reason=call.unknown)
        if question.request is None and self._is_own(call):
            return Verdict()
        try:
            return self._judged(call, question.call_id, self.guard)
        except Exception:
            return Verdict(reason=NOT_JUDGED)

    def _judged(self, call: Call, call_id: str, guard: Guard) -> Verdict:
        if call.tool in READERS and guard.policy.rules is not None:
            outside = [path for path in _read(call) if not self._is_in_scope(path)]
            if outside:
                return Verdict(reason=_OUT_OF_SCOPE, part=f"{call.tool} {outside[0]}")
        data = {
            "hook_event_name": "PreToolUse",
            "tool_name": call.tool,
            "tool_input": call.input,
            "tool_use_id": call_id,
            "cwd": str(self.cwd / (call.cwd or "")),
        }
        own = self._answer(guard, data)
        if own["decision"] == "allow":
            return Verdict()
        return Verdict(reason=str(own["reason"]), part=str(own["part"]))

    def _answer(self, guard: Guard, data: Json) -> Json:
        said = hook.answer(data, guard.policy, shfmt=guard.shfmt, token=guard.token, manner="judge")
        own: Json = said["cuggino"]
        return own

    def _is_unasked(self, call: Call) -> bool:
        whole_server = call.tool.rpartition("__")[0]
        rules = self.allowed_tools
        return call.tool in READERS or call.tool in rules or whole_server in rules

    def _is_own(self, call: Call) -> bool:
        """Return whether the call writes one of the program's own files."""
        if call.tool not in ("Edit", "Write"):
            return False
        path = os.path.realpath(self.cwd / str(call.input.get("file_path")))
        return any(fnmatchcase(path, pattern) for pattern in self.own_files)

    def _is_in_scope(self, path: str) -> bool:
        real = Path(os.path.realpath(self.cwd / path))
        return real.is_relative_to(os.path.realpath(self.cwd))


def _read(call: Call) -> Iterable[str]:
    given = call.input if isinstance(call.input, dict) else {}
    keys = ("file_path", "path", "filePath", "absolute_path", "dir_path", "directory")
    return [path for key in keys if (path := text_or_none(given.get(key))) is not None]
