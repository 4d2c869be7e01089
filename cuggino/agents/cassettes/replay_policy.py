"""The recorded calls of tools, judged once more by the policy of the present run."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from cuggino.agents.cassettes.cassette import EventTold, RecordedSession
from cuggino.agents.cassettes.masking import MARK
from cuggino.agents.cassettes.text import Places, map_texts
from cuggino.agents.guard import not_live, with_variables
from cuggino.agents.protocol import SpawnOptions
from cuggino.errors import ConfigError
from cuggino.events import ToolCall
from cuggino.security import hook
from cuggino.security.policy import Policy
from cuggino.security.shell.shfmt import find_shfmt

_LONGEST_CALL = 120


class _Answer(NamedTuple):
    is_allowed: bool
    reason: str = ""


class PolicyCheck:
    """Compares what became of each recorded call with what the policy now says of it.

    A call counts as one that ran when it has a result and was not denied. What the guard's answer
    depends on is not all in a recording: the folder that a shell had gone to, links on the disk.
    So a call is told only when the recorded policy, asked in the same place, still answers as it
    did then; or when that cannot be asked, or another version of cuggino has recorded it
    (`same_version`). No session was held to anything when its `guard` is None.

    Raises:
        GuardNotLive: commands cannot be judged, as their parser is not installed.
    """

    def __init__(
        self,
        session: RecordedSession,
        options: SpawnOptions,
        places: Places,
        *,
        same_version: bool,
    ) -> None:
        self._now = options.guard
        self._then = _recorded_policy(session, places)
        self._was_guarded = session.began.guard is not None
        self._same_version = same_version
        self._cwd = options.cwd
        self._env = {**os.environ, **options.env}
        self._fates = _fates(session)
        self._shfmt = ""
        if self._now is not None or self._was_guarded:
            self._shfmt = _shfmt()

    def complaint(self, call: ToolCall) -> str | None:
        """What is different about the call, in a sentence; None when nothing is."""
        then = self._fates.get(call.id)
        if then is None:
            return None  # nobody knows what became of it
        now = self._asked(self._now, call)
        if now.is_allowed == then.is_allowed:
            return None
        if self._then is not None and self._same_version:
            again = self._asked(self._then, call)
            if again.is_allowed != then.is_allowed:
                return None
        what = f"{call.name} {_gist(call)}".rstrip()
        if now.is_allowed:
            return f"{what} was denied in the recording, and is allowed now: {then.reason}"
        return f"{what} ran in the recording, and is denied now: {now.reason}"

    def _asked(self, policy: Policy | None, call: ToolCall) -> _Answer:
        if policy is None:
            return _Answer(is_allowed=True)
        data = {
            "hook_event_name": "PreToolUse",
            "tool_name": call.name,
            # The mark of a secret has spaces: a command with one would be another command.
            "tool_input": map_texts(call.input, lambda text: MARK.sub("masked", text))
            if isinstance(call.input, dict)
            else {},
            "tool_use_id": call.id,
            "cwd": str(Path(os.path.realpath(self._cwd))),
        }
        held = with_variables(policy, self._env)
        answer = hook.answer(data, held, shfmt=self._shfmt, token="", manner="allow")
        own = answer["cuggino"]
        return _Answer(own["decision"] == "allow", " ".join(str(own.get("reason", "")).split()))


def _recorded_policy(session: RecordedSession, places: Places) -> Policy | None:
    """The policy of the recording, in this project; None when there was none that is known."""
    if session.began.guard is None:
        return None
    try:
        return Policy.from_json(json.dumps(map_texts(session.began.guard, places.filled)))
    except ValueError:
        return None


def _fates(session: RecordedSession) -> dict[str, _Answer]:
    """What became of each call, by its id."""
    fates: dict[str, _Answer] = {}
    told = [line.event for line in session.lines if isinstance(line, EventTold)]
    for event in told:
        if event.get("_tag") == "ToolResult":
            fates[str(event.get("name"))] = _Answer(is_allowed=True)
    for event in told:
        if event.get("_tag") == "GuardDenied":
            reason = " ".join(str(event.get("reason", "")).split())
            fates[str(event.get("tool_use_id"))] = _Answer(is_allowed=False, reason=reason)
    return fates


def _gist(call: ToolCall) -> str:
    given: Any = call.input
    if not isinstance(given, dict):
        return ""
    first = next((given[k] for k in ("command", "file_path", "notebook_path") if k in given), "")
    text = " ".join(str(first).split())
    return f"`{text[:_LONGEST_CALL]}{'…' if len(text) > _LONGEST_CALL else ''}`" if text else ""


def _shfmt() -> str:
    try:
        return find_shfmt()
    except ConfigError as error:
        raise not_live(error.message) from error
