"""An agent of your own that passes the conformance suites of cuggino's agents.

`parrot.py` represents your CLI: it follows the instructions in a file and prints each action as a
JSON line. `Parrot` is the agent, all that cuggino needs to run it in a loop: data about the
program, how a session is started, and a reader of its lines. `ParrotArena` lets the suites choose
the actions of the model that a rule needs.
"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuggino import LlmAgentEvent, SpawnOptions
from cuggino.agents import Capabilities, Dialect, Ending, Launch, LineReader, ProgramAgent
from cuggino.errors import LlmSessionError
from cuggino.events import AgentMessage, SystemMessage, ToolCall, ToolResult
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

FAILURES = {
    "bad_key": "bad key",
    "no_connection": "no perch",
    "overload": "overloaded",
    "rate_limit": "too many requests",
    "server_error": "internal server error",
    "too_long": "the prompt is too long",
    "usage_limit": "You've hit your usage limit",
}
"""The message of each failure."""

PROGRAM = Path(__file__).with_name("parrot.py")


class ParrotReader(LineReader):
    """The reader of one session: `read` is called with each line, `failure` at its end."""

    dialect = Dialect(
        words=((re.compile("bad key"), "auth"), (re.compile("no perch"), "connection")),
        hints={"auth": "give it a nut"},
    )
    has_ended = False

    def read(self, raw: dict[str, Any], *, now: float) -> list[LlmAgentEvent] | None:
        """Return the events of a line; tools have the names of Claude Code."""
        match raw:
            case {"awake": True}:
                return [SystemMessage(text="The parrot wakes up.")]
            case {"say": str(text), "id": str(name)}:
                self.known = self.known._replace(answer=text)
                return [AgentMessage(text=text, message_id=name)]
            case {"run": command, "id": str(name)}:
                return [ToolCall(name="Bash", input={"command": command}, id=name)]
            case {"write": path, "id": str(name)}:
                return [ToolCall(name="Write", input={"file_path": path}, id=name)]
            case {"result": str(output), "of": str(name), "ok": bool(ok)}:
                return [ToolResult(name=name, output=output, is_error=not ok)]
            case {"end": "well"}:
                self.has_ended = True
            case _:
                pass
        return None

    def failure(self, ending: Ending) -> LlmSessionError | None:
        """Return the error of the session, if any; the `dialect` finds its reason."""
        return ending.answered(self.known.answer) if self.has_ended else ending.without_result()


class Parrot(ProgramAgent):
    """The program `parrot.py` as an agent."""

    name = "parrot"
    command = str(PROGRAM)
    minimum_version = (1, 0)

    @property
    def capabilities(self) -> Capabilities:
        """Return what it supports."""
        return Capabilities(note="repeats the lines of a file")

    def launch(self, options: SpawnOptions, stack: ExitStack) -> Launch:
        """Return how a session is started."""
        return Launch(
            argv=[self.program, *(["--act"] * options.dangerously_skip_permissions)],
            env=options.environment(self.environment),
            # On standard input, because arguments are limited in length.
            stdin=json.dumps({"prompt": options.prompt, "system": options.system_prompt or ""}),
            reader=ParrotReader,
        )


@dataclass(frozen=True)
class ParrotPlay:
    """The agent, and the file in which its program records the input."""

    agent: Parrot
    log: Path

    def requests(self) -> Sequence[ModelRequest]:
        """Return the input that the program has recorded."""
        inputs = [json.loads(self.log.read_text())] if self.log.exists() else []
        return [ModelRequest(system=each["system"], text=each["prompt"]) for each in inputs]

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
        parrot = Parrot(path="/nowhere/parrot" if fault else None)
        yield ParrotPlay(parrot, self.folder / "input.json")

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
            case Fail(kind, None) if kind in FAILURES:
                return {"fail": FAILURES[kind]}
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
# skipped: cut_stream
#   a parrot has nothing for Fail(kind='cut', times=None)
# skipped: transient_failure
#   a parrot has nothing for Fail(kind='server_error', times=1)
# skipped: transient_cut
#   a parrot has nothing for Fail(kind='cut', times=1)
# skipped: resume_after_failure
#   not claimed by the agent: resume
