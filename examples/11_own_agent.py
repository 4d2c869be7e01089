"""An agent of your own that passes the conformance suites of cuggino's agents.

`parrot.py` represents your CLI: it follows the instructions in a file and prints each action as a
JSON line. `Parrot` is the agent, all that cuggino needs to run it in a loop. `ParrotArena` lets the
suites choose the actions of the model that a rule needs.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import reactivex as rx
from reactivex import Observable, operators as ops

from cuggino import AgentFailed, AgentNotFound, LlmAgent, LlmAgentEvent, SpawnOptions
from cuggino.agents import Capabilities
from cuggino.errors import ProcessFailed, SpawnFailed
from cuggino.events import AgentMessage, SessionEnded, SystemMessage, ToolCall, ToolResult
from cuggino.processes import process_lines
from cuggino.testing import (
    AgentConformance,
    CannotPlay,
    Fail,
    FailureConformance,
    ModelRequest,
    Play,
    PlayArena,
    Run,
    Say,
    Turn,
    Write,
    acts_of,
    try_agent,
)

PROGRAM = Path(__file__).with_name("parrot.py")
REASONS = {"bad_key": "auth", "no_connection": "connection", "overload": "overloaded"}


class Parrot(LlmAgent):
    """The program `parrot.py` as an agent; only `name` and `spawn` are required."""

    name = "parrot"

    def __init__(self, *, path: str | None = None) -> None:
        self.path = path or sys.executable

    @property
    def capabilities(self) -> Capabilities:
        """Return the capabilities that `cuggino agents` lists."""
        return Capabilities(note="says what it is told to say")

    def check(self) -> str:
        """Return the version; a missing agent raises `AgentNotFound`."""
        return "1.0"

    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        """Run a session: cold, and disposal terminates the program and its processes."""
        argv = [self.path, str(PROGRAM), *(["--act"] * options.dangerously_skip_permissions)]
        # On standard input, because arguments are limited in length.
        words = json.dumps({"prompt": options.prompt, "system": options.system_prompt or ""})
        lines = process_lines(argv, cwd=options.cwd, env=options.env, stdin=words)
        return lines.pipe(ops.map(event_of), ops.catch(lambda error, _source: ended(error)))


def event_of(line: bytes) -> LlmAgentEvent:
    """Parse a line; tools have the names of Claude Code."""
    match json.loads(line):
        case {"awake": True}:
            return SystemMessage(text="The parrot wakes up.")
        case {"say": str(text), "id": str(name)}:
            return AgentMessage(text=text, message_id=name)
        case {"run": command, "id": str(name)}:
            return ToolCall(name="Bash", input={"command": command}, id=name)
        case {"write": path, "id": str(name)}:
            return ToolCall(name="Write", input={"file_path": path}, id=name)
        case {"result": str(output), "of": str(name), "ok": bool(ok)}:
            return ToolResult(name=name, output=output, is_error=not ok)
        case {"end": "well"}:
            return SessionEnded(outcome="completed")
        case other:
            return SystemMessage(text=str(other))


def ended(error: Exception) -> Observable[LlmAgentEvent]:
    """Emit the error after `SessionEnded`; a session that did not start has none."""
    if isinstance(error, SpawnFailed):
        return rx.throw(AgentNotFound(error.message, hint="install the parrot"))
    reason: Any = "crash"
    if isinstance(error, ProcessFailed) and error.child_exit_code == 3:
        reason = error.stderr_tail.strip()
    hint = "give it a nut" if reason == "auth" else None
    failed = AgentFailed(f"the parrot failed: {error}", reason=reason, hint=hint)
    return rx.concat(rx.of(SessionEnded(outcome="failed")), rx.throw(failed))


@dataclass(frozen=True)
class ParrotPlay:
    """The agent and its input."""

    agent: Parrot
    heard: Path

    def requests(self) -> Sequence[ModelRequest]:
        """Return the input that the program has noted."""
        said = [json.loads(self.heard.read_text())] if self.heard.exists() else []
        return [ModelRequest(system=each["system"], text=each["prompt"]) for each in said]

    def usage(self) -> None:
        """Return None: the tokens of a parrot are not counted."""


class ParrotArena(PlayArena):
    """An arena that writes instructions into the file that the parrot reads."""

    @contextmanager
    def play(self, turns: Sequence[Turn], fault: str | None) -> Iterator[Play]:
        """Provide the agent, which plays the turns."""
        if fault == "no_login":
            raise CannotPlay("a parrot needs no login")
        acts = [act for turn in turns for act in acts_of(turn)]
        lines = "".join(json.dumps(self.line(act)) + "\n" for act in acts)
        (self.folder / "lines.jsonl").write_text(lines)
        yield ParrotPlay(
            Parrot(path="/nowhere/parrot" if fault else None), self.folder / "heard.json"
        )

    def line(self, act: object) -> dict[str, str]:
        """Return the instruction for one act; some a parrot cannot play."""
        match act:
            case Say(text):
                return {"say": text}
            case Run(command):
                return {"run": command}
            case Write(path, text):
                return {"write": path, "text": text}
            case Fail("hang"):
                return {"run": "sleep 600"}
            case Fail("rate_limit" | "bad_key" | "overload" | "no_connection" as kind):
                return {"fail": REASONS.get(kind, kind)}
            case _:
                raise CannotPlay(f"a parrot has nothing for {act}")


if __name__ == "__main__":
    for suite in (AgentConformance, FailureConformance):
        for verdict in try_agent(ParrotArena, suite):
            if verdict.outcome != "passed":
                print(f"{verdict.outcome}: {verdict.rule}\n  {verdict.message}")

# prints:
# skipped: model
#   not claimed by the agent: a choice of models
# skipped: mcp_server
#   not claimed by the agent: MCP
# skipped: mcp_tool
#   not claimed by the agent: MCP
# skipped: sub_agent
#   a parrot has nothing for Delegate(turns=[Run(command='echo sub > sub.txt')])
# skipped: resume
#   not claimed by the agent: resume
# skipped: resume_unknown_session
#   not claimed by the agent: resume
# skipped: message
#   a parrot has nothing for Meanwhile()
# skipped: message_during_the_last_answer
#   a parrot has nothing for Meanwhile()
# skipped: usage_of_a_resumed_session
#   not claimed by the agent: resume and cost
# skipped: reasoning
#   a parrot has nothing for Think(text='Hm <NOTE>no</NOTE>.')
# skipped: unknown_output
#   the arena cannot add a line to the output of the agent's program
# skipped: bad_request
#   a parrot has nothing for Fail(kind='bad_request', times=None)
# skipped: no_login
#   a parrot needs no login
# skipped: prompt_too_long
#   a parrot has nothing for Fail(kind='too_long', times=None)
# skipped: usage_limit
#   a parrot has nothing for Fail(kind='usage_limit', times=None)
# skipped: server_error
#   a parrot has nothing for Fail(kind='server_error', times=None)
# skipped: cut_stream
#   a parrot has nothing for Fail(kind='cut', times=None)
# skipped: transient_failure
#   a parrot has nothing for Fail(kind='server_error', times=1)
# skipped: transient_cut
#   a parrot has nothing for Fail(kind='cut', times=1)
# skipped: resume_after_failure
#   not claimed by the agent: resume
