"""An agent of your own, held to the rules that the agents of cuggino keep.

`parrot.py` stands for a CLI that you have: it does what a file says and prints a JSON line for each
thing that it does. `Parrot` is the agent, all that cuggino needs to run it in a loop. `ParrotArena`
tells the suite how its model is made to do what a rule wants.
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

from cuggino import AgentFailed, AgentNotFound, InteractiveOptions, LlmAgentEvent, SpawnOptions
from cuggino.agents import Capabilities
from cuggino.errors import ProcessFailed, SpawnFailed
from cuggino.events import AgentMessage, SessionEnded, SystemMessage, ToolCall, ToolResult
from cuggino.sources import process_lines
from cuggino.testing import (
    CannotPlay,
    Fail,
    Play,
    PlayArena,
    Run,
    Say,
    Think,
    Told,
    Turn,
    Write,
    acts_of,
    try_agent,
)

PROGRAM = Path(__file__).with_name("parrot.py")
REASONS = {"bad_key": "auth", "no_connection": "connection", "overload": "overloaded"}


class Parrot:
    """The program `parrot.py` as an agent."""

    name = "parrot"
    can_resume = False

    def __init__(self, *, path: str | None = None) -> None:
        self.path = path or sys.executable

    @property
    def capabilities(self) -> Capabilities:
        """What `cuggino agents` shows; only what is so."""
        return Capabilities(note="says what it is told to say")

    def check(self) -> str:
        """The version; an agent that is missing raises `AgentNotFound` here."""
        return "1.0"

    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        """One session: cold, and disposal ends the program with all that it has started."""
        argv = [self.path, str(PROGRAM), *(["--act"] * options.dangerously_skip_permissions)]
        # By standard input, as an argument cannot be long.
        words = json.dumps({"prompt": options.prompt, "system": options.system_prompt or ""})
        lines = process_lines(argv, cwd=options.cwd, env=options.env, stdin=words)
        return lines.pipe(ops.map(event_of), ops.catch(lambda error, _source: ended(error)))

    def interactive(self, options: InteractiveOptions) -> int:
        """Nothing to talk to."""
        return 0


def event_of(line: bytes) -> LlmAgentEvent:
    """What a line says; tools are named as Claude Code names them."""
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
    """The error of a session comes behind its `SessionEnded`; one that did not begin has none."""
    if isinstance(error, SpawnFailed):
        return rx.throw(AgentNotFound(error.message, hint="install the parrot"))
    reason: Any = "crash"
    if isinstance(error, ProcessFailed) and error.child_exit_code == 3:
        reason = error.stderr_tail.strip()
    failed = AgentFailed(f"the parrot failed: {error}", reason=reason)
    return rx.concat(rx.of(SessionEnded(outcome="failed")), rx.throw(failed))


@dataclass(frozen=True)
class ParrotPlay:
    """The agent whose lines are written, and what it was told."""

    agent: Parrot
    heard: Path

    def told(self) -> Sequence[Told]:
        """What the program has noted."""
        said = [json.loads(self.heard.read_text())] if self.heard.exists() else []
        return [Told(system=each["system"], text=each["prompt"]) for each in said]

    def taken(self) -> None:
        """Nobody counts what a parrot takes."""


class ParrotArena(PlayArena):
    """Writes what is to be done into the file that the parrot reads."""

    @contextmanager
    def play(self, turns: Sequence[Turn], fault: str | None) -> Iterator[Play]:
        """The agent, which does what the turns say."""
        acts = [act for turn in turns for act in acts_of(turn)]
        lines = "".join(json.dumps(self.line(act)) + "\n" for act in acts)
        (self.folder / "lines.jsonl").write_text(lines)
        yield ParrotPlay(
            Parrot(path="/nowhere/parrot" if fault else None), self.folder / "heard.json"
        )

    def line(self, act: object) -> dict[str, str]:
        """What is written for one act; some a parrot cannot do."""
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
            case Think() | Fail() | _:
                raise CannotPlay(f"a parrot has nothing for {act}")


if __name__ == "__main__":
    for verdict in try_agent(ParrotArena):
        if verdict.outcome != "passed":
            print(f"{verdict.outcome}: {verdict.rule}\n  {verdict.words}")

# prints:
# skipped: a_service_that_fails
#   a parrot has nothing for Fail(kind='server_error')
# skipped: a_cut_stream_is_no_success
#   a parrot has nothing for Fail(kind='cut')
# skipped: the_model_is_the_one_asked_for
#   not claimed by the agent: a choice of models
# skipped: servers_of_tools_are_started
#   not claimed by the agent: MCP
# skipped: a_policy_is_held
#   not claimed by the agent: a guard that judges calls
# skipped: a_session_is_gone_on_with
#   not claimed by the agent: resume
# skipped: a_session_that_is_not_there
#   not claimed by the agent: resume
# skipped: a_resumed_session_tells_what_it_took_itself
#   not claimed by the agent: resume and cost
# skipped: reasoning_is_no_text
#   a parrot has nothing for Think(text='Hm <NOTE>no</NOTE>.')
# skipped: what_is_not_known_is_ignored
#   the arena cannot put a line into what the agent's program prints
