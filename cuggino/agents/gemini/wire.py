"""The wire format of the Gemini CLI's stream-json: exit codes, and the fold of a run (CUG-082)."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple, Unpack

from cuggino.agents.base.failure import interrupted
from cuggino.agents.base.reader import Ending, LineReader, ReaderOptions
from cuggino.agents.base.wire import (
    Draft,
    Json,
    count_or_zero,
    dict_or_empty,
    output_text,
    shown,
    text_or_none,
)
from cuggino.agents.gemini.failure import DIALECT, INTERRUPTED, LOOP, bare, refusal_of
from cuggino.agents.gemini.guard import GeminiWatch, same_input
from cuggino.agents.gemini.tools import call_of, unmarked
from cuggino.errors import AgentFailed, LlmSessionError, StorageError
from cuggino.events import (
    LlmAgentEvent,
    SystemMessage,
    ToolCall,
    ToolResult,
    Usage,
)

SHELL = "run_shell_command"

_END = "</untrusted_context>"
_CODE = re.compile(
    r"^Exit Code: (\d{1,9})\n"
    r"(?:(?:Signal|Background PIDs|Process Group PGID): .*\n)*" + re.escape(_END),
    re.MULTILINE,
)
"""At the end of what the model sees; the output of the command comes before."""


class Exits:
    """The exit codes of a session's commands.

    The program reports them only to the model and to hooks. A hook after each command
    (`AfterTool`) stores them in a folder, where they are read when the result of the command
    arrives. Without it a failed command would count as a success.
    """

    def __init__(self, folder: Path) -> None:
        """Raises: StorageError."""
        self._folder = folder / "exits"
        self._script = folder / "exits.sh"
        self._codes: list[tuple[str, int]] = []
        place = shlex.quote(str(self._folder))
        try:
            self._folder.mkdir()
            self._script.write_text(
                f"cat > {place}/$$.part && mv {place}/$$.part {place}/$$.json\necho '{{}}'\n"
            )
        except OSError as error:
            why = error.strerror or str(error)
            raise StorageError("prepare session", f"no folder for the session: {why}") from error

    def hooks(self) -> dict[str, Any]:
        """Return the settings that install the hook."""
        command = f"/bin/sh {shlex.quote(str(self._script))}"
        entry = {"type": "command", "command": command, "timeout": 60_000}
        return {"AfterTool": [{"matcher": f"^{SHELL}$", "hooks": [entry]}]}

    def code(self, arguments: Any) -> int:
        """Return the exit code of a finished command with these arguments, or 0 if unknown."""
        self._read()
        key = same_input(arguments)
        for found in self._codes:
            if found[0] == key:
                self._codes.remove(found)
                return found[1]
        return 0

    def _read(self) -> None:
        for path in sorted(self._folder.glob("*.json")):
            try:
                told = dict_or_empty(json.loads(path.read_bytes()))
                path.unlink()
            except (OSError, ValueError, RecursionError):
                continue
            said = json.dumps(dict_or_empty(told.get("tool_response")).get("llmContent"))
            text = said.replace("\\n", "\n")
            key = same_input(unmarked(told.get("tool_input")))
            self._codes.append((key, _code_in(text)))


def _code_in(text: str) -> int:
    """Return the exit code at the end of the text; a command may print the same words before."""
    code = 0
    for found in _CODE.finditer(text):
        code = int(found[1]) if found.end() > text.rfind(_END) else 0
    return code


class Told(NamedTuple):
    """What the program has reported about its run."""

    result: Json | None = None
    said: str = ""
    """The last error reported before the result."""
    is_turn: bool = False
    """True from the model's first words or call of a turn to the next result of a call."""


class GeminiSession(LineReader):
    """The fold over one run of the program; see `LineReader`.

    The program reports text in pieces only. Each is a `MessageDelta`, and all pieces until
    something else happens are one `AgentMessage`. If the connection breaks within a message, the
    program silently starts over, so the `AgentMessage` begins with the broken attempt; a message
    that was never completed has none. US dollars are not reported.

    `servers` are the names of the MCP servers; `exit_code` returns that of a finished command by
    its input.
    """

    dialect = DIALECT
    _watch: GeminiWatch | None

    def __init__(
        self,
        *,
        program: str = "gemini",
        cwd: str = "/",
        servers: Iterable[str] = (),
        exit_code: Callable[[Any], int] = lambda _given: 0,
        **given: Unpack[ReaderOptions],
    ) -> None:
        super().__init__(program=program, **given)
        self._told = Told()
        self._cwd = cwd
        self._servers = tuple(servers)
        self._exit_code = exit_code
        self._commands: dict[str, Any] = {}
        """Inputs of the commands that run."""
        self._draft = Draft()

    def read(self, raw: Json, *, now: float) -> list[LlmAgentEvent]:
        match raw.get("type"):
            case "init":
                self.known = self.known._replace(
                    session_id=text_or_none(raw.get("session_id")) or self.known.session_id,
                    model=text_or_none(raw.get("model")) or self.known.model,
                )
                if self._watch:
                    self._watch.start()
                return [SystemMessage(text="Session initialized")]
            case "message" if raw.get("role") == "assistant":
                return self._text(raw)
            case "tool_use":
                return [*self._complete(), self._tool_call(raw)]
            case "tool_result":
                return [*self._complete(), *self._tool_result(raw)]
            case "error":
                said = text_or_none(raw.get("message")) or "Unknown error"
                self._told = self._told._replace(said=said)
                return [SystemMessage(text=said)]
            case "result":
                return self._ends(raw)
            case _:
                return []

    def failure(self, ending: Ending) -> LlmSessionError | None:
        said, answer, result = self._told.said, self.known.answer, self._told.result
        if result is not None and result.get("status") == "success":
            if LOOP in said:
                return AgentFailed(said, reason="unknown")
            return ending.answered(answer)
        if ending.exit_code == INTERRUPTED:
            return interrupted(ending.program)
        if result is None:
            code = f"exit {ending.exit_code}"
            return ending.without_result(code, told=bare(said), answer=self._draft.text or answer)
        told = text_or_none(dict_or_empty(result.get("error")).get("message"))
        message = told or said or "Unknown error"
        return ending.refused(refusal_of(message, exit_code=ending.exit_code, now=ending.now))

    def _text(self, raw: Json) -> list[LlmAgentEvent]:
        text = text_or_none(raw.get("content"))
        if not text:
            return []
        self._speaks()
        begun = text_or_none(raw.get("timestamp")) or "message"
        return [self._draft.add(text, f"{begun}/{self.known.turns}")]

    def _complete(self) -> list[LlmAgentEvent]:
        """Complete the message that was written so far."""
        said = self._draft.end()
        for message in said:
            self.known = self.known._replace(answer=message.text)
        return [*said]

    def _speaks(self) -> None:
        if not self._told.is_turn:
            self.known = self.known._replace(turns=self.known.turns + 1)
            self._told = self._told._replace(is_turn=True)

    def _tool_call(self, raw: Json) -> ToolCall:
        self._speaks()
        call_id = text_or_none(raw.get("tool_id")) or ""
        name = text_or_none(raw.get("tool_name")) or "unknown"
        given = unmarked(raw.get("parameters"))
        call = call_of(name, given, cwd=self._cwd, servers=self._servers)
        if call.tool == "Bash":
            self._commands[call_id] = given
        if self._watch:
            self._watch.call(call_id, name, call.tool, given)
        return ToolCall(name=call.tool, input=shown(call.input), id=call_id)

    def _tool_result(self, raw: Json) -> list[LlmAgentEvent]:
        self._told = self._told._replace(is_turn=False)
        call_id = text_or_none(raw.get("tool_id")) or ""
        has_failed = raw.get("status") != "success"
        message = text_or_none(dict_or_empty(raw.get("error")).get("message")) or ""
        told = raw.get("output")
        output = (output_text(told) if isinstance(told, str | list | dict) else "") or message
        events: list[LlmAgentEvent] = []
        if self._watch:
            events += self._watch.result(call_id, is_error=has_failed, message=message or output)
        is_error = has_failed
        if call_id in self._commands:
            given = self._commands.pop(call_id)
            # The program reports commands that it refuses itself as successful.
            is_error = has_failed or output.startswith("Blocked: ") or self._exit_code(given) != 0
        result = ToolResult(name=call_id or "unknown", output=output, is_error=is_error)
        return [*events, result]

    def _ends(self, raw: Json) -> list[LlmAgentEvent]:
        if self._told.result is not None:
            return []
        events = self._complete() if raw.get("status") == "success" else []
        stats = dict_or_empty(raw.get("stats"))
        model = _most_used(dict_or_empty(stats.get("models"))) or self.known.model
        self.known = self.known._replace(model=model)
        self._told = self._told._replace(result=raw)
        return [*events, *self.used(_usage(stats))]


def _most_used(models: Json) -> str | None:
    """Return the model with the most tokens: the first one may only have been asked to route."""
    counts = {
        name: count_or_zero(dict_or_empty(told).get("total_tokens"))
        for name, told in models.items()
    }
    return max(counts, key=counts.__getitem__) if any(counts.values()) else None


def _usage(stats: Json) -> Usage | None:
    """Return the tokens of this run; reasoning is part of the output."""
    given, cached = count_or_zero(stats.get("input_tokens")), count_or_zero(stats.get("cached"))
    total = count_or_zero(stats.get("total_tokens"))
    output = max(count_or_zero(stats.get("output_tokens")), total - given)
    if not (given or output):
        return None
    return Usage(
        input_tokens=max(0, given - cached), output_tokens=output, cache_read_tokens=cached
    )
