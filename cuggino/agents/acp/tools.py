"""Tool calls of the protocol with Claude Code's names, which events, policies and reports use."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from acp import schema

from cuggino.agents.acp.profiles import Profile
from cuggino.agents.base.calls import Call, shell_call, unknown_call
from cuggino.agents.base.watch import Verdict, same_text
from cuggino.agents.base.wire import (
    Json,
    dict_or_empty,
    media_texts,
    output_text,
    text_or_none,
)
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
_SHELL_KEYS = frozenset(
    {
        *("command", "description", "timeout", "timeout_seconds", "shell"),
        *("is_background", "run_in_background"),
        *("background", "disable_timeout", "directory", "cwd", "workdir", "working_directory"),
    }
)
"""Known inputs of shells."""
_QUESTION = "Nobody is there to answer: decide yourself, and mention it in your report"
_FOLDERS = ("directory", "cwd", "workdir", "working_directory")


class CallUpdate(schema.ToolCallUpdate):
    """A call or an update of it, in the permission request as well.

    A new call is read like its updates, as a call without a title must be judged, too.
    """

    content: list[Any] | None = None
    """Texts, changes of files and media; the models of these drop what is incomplete."""

    @property
    def has_ended(self) -> bool:
        """True if this is the last update of the call."""
        return self.status in ("completed", "failed")


class ReportedCall:
    """One call, as the program has reported it so far."""

    def __init__(self, call_id: str, *, cwd: Path) -> None:
        self.id = call_id
        self.stage: Literal["reported", "open", "ended"] = "reported"
        """An `open` call was emitted and has no result, an `ended` one has."""
        self.verdict: Verdict | None = None
        self.input: Json | None = None
        self.output = ""
        self._cwd = cwd
        self._kind: str | None = None
        self._title = ""
        self._name = ""
        self._paths: dict[str, None] = {}

    @property
    def is_denied(self) -> bool:
        """True if its verdict denies it."""
        return self.verdict is not None and not self.verdict.is_allowed

    def add(self, update: CallUpdate, profile: Profile) -> None:
        """Add what an update, or the request for permission, reports."""
        self._kind = update.kind or self._kind
        self._title = update.title or self._title
        if profile.names == "meta":
            meta = update.field_meta or {}
            name = text_or_none(meta.get("toolName")) or text_or_none(meta.get("tool_name"))
            self._name = name or self._name
        else:
            self._name = self._name or self._title
        texts, paths = _content(update.content)
        if isinstance(update.raw_input, dict) and update.raw_input:
            self.input = update.raw_input
        elif profile.arguments == "text" and self.input is None and texts and not update.has_ended:
            self.input = _object(texts[-1])  # it grows from update to update
        paths += [location.path for location in update.locations or ()]
        self._paths |= dict.fromkeys(paths)
        if update.has_ended:
            self.output = "\n".join(texts) or _output(update.raw_output)

    def call(self, profile: Profile) -> Call:
        """Return the call with Claude Code's names. Never raises."""
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


def refusal(call: Call, profile: Profile) -> str:
    """Return why the call is useless in a session without a person, or ""."""
    key = profile.foreground
    if call.tool == "Task" and not call.unknown and key and call.input.get(key) is not False:
        return f"Give {key}: false, as this session does not wait for what runs after your turn"
    return _QUESTION if call.tool == "AskUserQuestion" else ""


def key_of(call: Call) -> tuple[str, str]:
    """Return equal keys for calls with the same effect."""
    return call.tool, same_text(call.input)


def _content(parts: list[Any] | None) -> tuple[list[str], list[str]]:
    """Return the texts of a call, and the paths of its changes."""
    texts: list[str] = []
    paths: list[str] = []
    for part in parts or ():
        match part:
            case {"type": "diff"}:
                paths += [path] if isinstance(path := part.get("path"), str) else []
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
