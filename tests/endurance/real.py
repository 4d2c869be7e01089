"""The real Claude Code CLI in the trial of `run`, on a model without memory."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from tests.endurance.place import Place
from tests.endurance.trials import NAMES, TRIALS, Trial, run_place
from tests.model_script import Message, ModelRequest, Reply, Script, Text, Tool
from tests.model_server import ModelServer
from tests.real_claude import clean_env, install_claude

NAME = "claude"
_ROLE = re.compile(r"# Role: (\w+) agent")
_PLAN = re.compile(r"\.cuggino/wip/[\w-]+\.plan\.md")
_UNREAD = "has not been read"
"""How the Write tool refuses a file that a killed agent has written."""


@contextmanager
def claude_trial() -> Iterator[Trial]:
    """Provide the trial, whose model servers run until it is left."""
    program = install_claude()
    with ExitStack() as stack:

        def make(root: Path) -> Place:
            place = run_place(root, agent="claude", agentPath=str(program))
            server = stack.enter_context(ModelServer(_model(place)))
            clean = clean_env(root.resolve() / "home", server.url)
            place.env = {**place.env, **clean, "TMPDIR": place.env["TMPDIR"]}
            return place

        yield replace(TRIALS["run"], name=NAME, make=make)


def _model(place: Place) -> Script:
    """Return a model that derives the next step from the project's history."""

    def reply(request: ModelRequest) -> Reply:
        role = _ROLE.search(request.system_text)
        done = place.git("log", "--format=%s").count("feat: ")
        match role[1] if role else None:
            case "planning":
                return _planning(request, place, NAMES[done : 4 if done < 4 else None])
            case "implementing":
                return _implementing(request, NAMES[done], is_last=done in (3, 5))
            case "reviewing" if done < len(NAMES):
                return _says("REQUEST_CHANGES", "two are missing")
            case "reviewing":
                return _says("APPROVED", "fine")
            case _:  # a title for the conversation, and the like
                return Message([Text("Words")])

    return reply


def _planning(request: ModelRequest, place: Place, names: tuple[str, ...]) -> Reply:
    found = _PLAN.search(request.system_text)
    assert found is not None, "the planning agent is told no file"
    path = str(place.folder / found[0])
    text = "# Plan\n\n" + "".join(f"- [ ] {name}\n" for name in names)
    write = Message([Tool("Write", {"file_path": path, "content": text})])
    match request.turns:
        case 0:
            return write
        case 1 if _UNREAD in request.messages_text:
            return Message([Tool("Read", {"file_path": path})])
        case 2:
            return write
        case _:
            return _says("PLAN_COMPLETE", f"{len(names)} tasks")


def _implementing(request: ModelRequest, name: str, *, is_last: bool) -> Reply:
    if request.turns:
        return _says("DONE" if is_last else "PROGRESS", f"feat: {name}")
    command = f"mkdir -p words && echo {json.dumps(name)} > words/{name}.txt"
    return Message([Tool("Bash", {"command": command, "description": "write a word"})])


def _says(tag: str, text: str) -> Message:
    return Message([Text(f"<{tag}>{text}</{tag}>")])
