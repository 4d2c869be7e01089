"""The tool calls of a session: as reported, as judged, and what ran all the same.

They get Claude Code's names, which events, policies and reports use.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

from acp import schema

from cuggino.agents.base.agent import SpawnOptions
from cuggino.agents.base.calls import Call, shell_call, unknown_call
from cuggino.agents.base.watch import Used, Verdict, Watch, same_text
from cuggino.agents.base.wire import (
    Json,
    dict_or_empty,
    list_or_empty,
    media_texts,
    output_text,
    shown,
    text_or_none,
)
from cuggino.agents.profiles import Profile
from cuggino.events import LlmAgentEvent, ToolCall, ToolResult
from cuggino.guard import READERS

_OF_KIND = {
    "execute": "Bash",
    "edit": "Edit",
    "delete": "MultiEdit",
    "move": "MultiEdit",
    "read": "Read",
    "search": "Grep",
    "fetch": "WebFetch",
    "think": "TodoWrite",
}
_WRITERS = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})
_PATHS = (
    *("file_path", "path", "filePath", "filepath", "absolute_path", "absolutePath"),
    *("notebook_path", "notebookPath", "source", "destination", "from", "to"),
    *("old_path", "new_path", "oldPath", "newPath"),
)
_READ = ("file_path", "path", "filePath", "absolute_path", "dir_path", "directory")
"""Inputs of readers that name a file or a folder."""
_FOLDERS = ("directory", "cwd", "workdir", "working_directory")
_SHELL_KEYS = (
    *("command", "description", "timeout", "timeout_seconds", "shell", *_FOLDERS),
    *("is_background", "run_in_background", "background", "disable_timeout"),
)
"""Known inputs of shells."""
_QUESTION = "Nobody is there to answer: decide yourself, and mention it in your report"
_CHOICE = "Nobody is there to choose between its answers: do without"


class CallUpdate(schema.ToolCallUpdate):
    """A call or an update of it, in the permission request as well.

    Only the id is required. A new call is read like its updates: without a title, or with other
    malformed fields, it must be judged all the same.
    """

    kind: Any = None
    """An unknown kind makes the call unknown; it does not leave the kind reported before."""
    content: Any = None
    """Texts, changes of files and media."""
    locations: Any = None

    @property
    def has_ended(self) -> bool:
        """True if this is the last update of the call."""
        return self.status in ("completed", "failed")


class ReportedCall:
    """One call, as the program has reported it so far."""

    def __init__(self, call_id: str, profile: Profile, cwd: Path) -> None:
        self.id = call_id
        self.stage: Literal["reported", "open", "ended"] = "reported"
        """An `open` call was emitted and has no result, an `ended` one has."""
        self.verdict: Verdict | None = None
        self.input: Json | None = None
        self.output = ""
        self._profile, self._cwd = profile, cwd
        self._kind: str | None = None
        self._title = ""
        self._name = ""
        self._paths: dict[str, None] = {}

    @property
    def is_denied(self) -> bool:
        return self.verdict is not None and not self.verdict.is_allowed

    def add(self, update: CallUpdate) -> None:
        """Add what an update, or the request for permission, reports."""
        self._kind = text_or_none(update.kind) or self._kind
        self._title = update.title or self._title
        if self._profile.names == "meta":
            meta = update.field_meta or {}
            name = text_or_none(meta.get("toolName")) or text_or_none(meta.get("tool_name"))
            self._name = name or self._name
        else:
            self._name = self._name or self._title
        texts, paths = _content(update.content)
        if isinstance(update.raw_input, dict) and update.raw_input:
            self.input = update.raw_input
        elif self.input is None and self._profile.arguments == "text" and not update.has_ended:
            self.input = _object(texts[-1]) if texts else None  # it grows from update to update
        paths += [dict_or_empty(one).get("path") for one in list_or_empty(update.locations)]
        self._paths |= dict.fromkeys(path for path in paths if isinstance(path, str))
        if update.has_ended:
            self.output = "\n".join(texts) or _output(update.raw_output)

    def result(self, *, is_error: bool) -> ToolResult:
        self.stage = "ended"
        output = self.output
        if self.verdict is not None and not self.verdict.is_allowed:
            output, is_error = self.verdict.reason, True
        return ToolResult(name=self.id, output=output, is_error=is_error)

    def call(self) -> Call:
        """Return the call with Claude Code's names. Never raises."""
        profile = self._profile
        if self._name.startswith("mcp__"):
            return Call(self._name, self.input or {})
        tool = profile.tools.get(self._name) or _OF_KIND.get(self._kind or "")
        if tool is None:
            return unknown_call(self._name or self._title or "tool", self.input)
        if tool == "Bash":
            return self._shell()
        if tool in _WRITERS:
            return self._written(tool)
        given = dict(self.input or {})
        which = given.get("subagent_type")
        if tool == "Task" and profile.sub_agents and which not in (None, *profile.sub_agents):
            why = f"The sub-agent {which} is not guarded: use {' or '.join(profile.sub_agents)}"
            return Call(tool, given, unknown=why)
        if tool == "Read" and self._files():
            given["file_path"] = self._files()[0]
        found = [text_or_none(given.get(key)) for key in _READ] if tool in READERS else []
        return Call(tool, given, reads=tuple(path for path in found if path is not None))

    def _shell(self) -> Call:
        given = dict(self.input or {})
        command = given.get("command")
        if not isinstance(command, str):
            return Call("Bash", given, unknown="Its command was not reported")
        folders = [given[key] for key in _FOLDERS if given.get(key)]
        if len(folders) > 1 or not all(isinstance(one, str) for one in folders):
            return Call("Bash", given, unknown="Leave out one of the folders")
        return shell_call(Call("Bash", given, cwd=folders[0] if folders else None), _SHELL_KEYS)

    def _files(self) -> list[str]:
        """Return every file that the call names, under all of its names."""
        given = self.input or {}
        named = [given[key] for key in _PATHS if isinstance(given.get(key), str)]
        files: dict[str, str] = {}
        for name in [*named, *self._paths]:
            files.setdefault(os.path.normpath(self._cwd / name), name)
        return list(files.values())

    def _written(self, tool: str) -> Call:
        files, given = self._files(), dict(self.input or {})
        if not files:
            return Call(tool, given, unknown="Its files were not reported")
        if tool == "MultiEdit" or len(files) > 1:
            return Call("MultiEdit", {**given, "edits": [{"file_path": file} for file in files]})
        if tool == "Edit" and "content" in given:
            tool = "Write"
        return Call(tool, {**given, "file_path": files[0]})


def _useless(call: Call, profile: Profile) -> str:
    """Return why the call is useless in a session without a person, or ""."""
    key = profile.foreground
    if call.tool == "Task" and not call.unknown and key and call.input.get(key) is not False:
        return f"Give {key}: false, as this session does not wait for what runs after your turn"
    return _QUESTION if call.tool == "AskUserQuestion" else ""


def key_of(call: Call) -> tuple[str, str]:
    """Return equal keys for calls with the same effect."""
    return call.tool, same_text(call.input)


def _content(parts: Any) -> tuple[list[str], list[Any]]:
    """Return the texts of a call, and the paths of its changes."""
    texts: list[str] = []
    paths: list[Any] = []
    for part in list_or_empty(parts):
        match part:
            case {"type": "diff"}:
                paths.append(part.get("path"))
            case {"content": {"text": str(text)}}:
                texts.append(output_text(text))
            case {"content": content}:
                texts += media_texts([content])
            case _:
                pass
    return texts, paths


def _output(raw: Any) -> str:
    if isinstance(raw, str | list):
        return output_text(raw)
    given: Mapping[str, Any] = dict_or_empty(raw)
    if isinstance(parts := given.get("content"), list):
        return output_text(parts)
    found = [given.get(key) for key in ("output", "text", "stdout", "stderr")]
    return "\n".join(text for text in found if isinstance(text, str) and text)


def _object(text: str) -> Json | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


CANCELLED = schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
"""The answer to a request that cannot be judged, or offers nothing else."""

Judging: TypeAlias = Callable[[Call, str, bool], Verdict]
"""Returns the verdict on a call with this id, and on one that has already run if True. It never
raises."""


class Calls:
    """The calls of one session, by their ids."""

    def __init__(
        self,
        profile: Profile,
        options: SpawnOptions,
        judge: Judging,
        watch: Watch,
        *,
        is_confined: bool,
    ) -> None:
        self.reasons: list[str] = []
        """Why calls were denied since the last prompt."""
        self._profile, self._options = profile, options
        self._judge, self._watch = judge, watch
        self._is_confined = is_confined
        self._calls: dict[str, ReportedCall] = {}

    def update(self, update: CallUpdate, *, is_new: bool) -> list[LlmAgentEvent]:
        """Return the events of a new call or of an update."""
        known = self._calls.get(update.tool_call_id)
        if is_new and known is not None and known.stage == "ended":
            del self._calls[update.tool_call_id]  # another call has its id
        reported = self._reported(update)
        events: list[LlmAgentEvent] = []
        runs = update.status == "in_progress" and self._profile.arguments == "input"
        if reported.input is not None or runs or update.has_ended:
            events += self._emit(reported)
        if update.has_ended:
            has_failed = update.status == "failed"
            self._look_back(reported, has_failed=has_failed)
            if reported.stage == "open":
                events.append(reported.result(is_error=has_failed))
        return events

    def ask(
        self, update: CallUpdate, options: Sequence[schema.PermissionOption]
    ) -> tuple[schema.RequestPermissionResponse, list[LlmAgentEvent]]:
        """Return the answer to a request for permission, and its events.

        An answer that holds for later calls is never given.
        """
        reported = self._reported(update)
        events, call = self._emit(reported), reported.call()
        is_single = [option.kind for option in options].count("allow_once") == 1
        if reason := _useless(call, self._profile) or ("" if is_single else _CHOICE):
            verdict = denial(call, reported.id, reason)
        else:
            verdict = self._judge(call, reported.id, False)
        if not reported.is_denied:
            reported.verdict = verdict
        if not verdict.is_allowed:
            self.reasons.append(f"{verdict.part}: {verdict.reason}")
        denied = self._watch.see(Used(verdict, reported.id))
        events += denied if self._options.guard is not None else []
        wanted = "allow_once" if verdict.is_allowed else "reject_once"
        for option in options:
            if option.kind == wanted:
                chosen = schema.AllowedOutcome(outcome="selected", option_id=option.option_id)
                return schema.RequestPermissionResponse(outcome=chosen), events
        return CANCELLED, events

    def close(self) -> list[LlmAgentEvent]:
        """Return results for the calls that have none at the end of a turn."""
        unfinished = [call for call in self._calls.values() if call.stage == "open"]
        for reported in unfinished:
            # It may have run in part, even if it failed.
            self._look_back(reported, has_failed=True)
        return [reported.result(is_error=True) for reported in unfinished]

    def _reported(self, update: CallUpdate) -> ReportedCall:
        new = ReportedCall(update.tool_call_id, self._profile, self._options.cwd)
        reported = self._calls.setdefault(update.tool_call_id, new)
        reported.add(update)
        return reported

    def _emit(self, reported: ReportedCall) -> list[LlmAgentEvent]:
        """Return the event of a call, once."""
        if reported.stage != "reported":
            return []
        reported.stage = "open"
        call = reported.call()
        given = shown(call.input if call.input is not None else {})
        return [ToolCall(name=call.tool, input=given, id=reported.id)]

    def _look_back(self, reported: ReportedCall, *, has_failed: bool) -> None:
        """Judge a call that ran without being asked about, or not as it was asked about."""
        call, verdict = reported.call(), reported.verdict
        if verdict is not None and verdict.is_allowed:
            reported.verdict = None  # it allows a single call
        if self._options.guard is None or (has_failed and call.tool != "Bash"):
            return
        unrun = self._profile.unrun
        if has_failed and unrun and reported.output.startswith(unrun):
            return
        if call.tool == "AskUserQuestion":
            return  # without an answer, some of these complete all the same
        if verdict is not None and not verdict.is_allowed:
            if not has_failed:
                self._watch.ran(call.tool, verdict)
        elif not self._is_confined and (verdict is None or key_of(call) not in verdict.keys):
            late = self._judge(call, reported.id, True)
            if not late.is_allowed:
                self._watch.fail(f"{call.tool} was used without its verdict: {late.reason}")


def denial(call: Call, call_id: str, reason: str) -> Verdict:
    """Return the verdict that denies a call for this reason."""
    return verdict_on(call, call_id, {"decision": "deny", "reason": reason})


def verdict_on(call: Call, call_id: str, own: Json) -> Verdict:
    """Return the verdict of the guard; its key is equal for calls with the same effect."""
    return Verdict.read({"tool": call.tool, **own}, key_of(call), call=call_id)
