"""A scenario of the scripted agent as the words of a scripted model, for the real agent."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from cuggino.agents.scripted.scenario import Scenario, ScenarioRun, Step
from tests.model_script import Block, Message, ModelRequest, Reply, RoleScript, Script, Text, Tool

ROLES = ("planning", "implementing", "reviewing")

_ROLE = "# Role: {} agent"
"""How the system prompt of a role begins."""

_FILES = {
    "$CUGGINO_PLAN_FILE": re.compile(r"\.cuggino/wip/[\w-]+\.planning/plan\.md"),
    "$CUGGINO_REVIEW_FILE": re.compile(r"\.cuggino/wip/[\w-]+\.reviewing/review\.md"),
}
"""What stands for the files of the session, whose names only the system prompt knows."""

_END = "END_OF_THE_TEXT"


def scenario_model(scenario: Scenario, folder: Path) -> Script:
    """Return a model that acts out the scenario with the agent's own tools, in `folder`.

    `write` becomes the Write tool, which requires an absolute path and rejects a file that was not
    read before; a second `write` of a file and `append` become here-documents of the Bash tool.
    """
    written: set[str] = set()
    runs = {role: [_turns(run, folder, written) for run in scenario.runs(role)] for role in ROLES}
    script = RoleScript({role: re.escape(_ROLE.format(role)) for role in ROLES}, runs)
    return lambda request: _with_paths(script(request), request, folder)


def _turns(run: ScenarioRun, folder: Path, written: set[str]) -> list[Message]:
    """One message a tool call, with the texts before it; the texts behind the last one end it."""
    turns: list[Message] = []
    texts: list[Block] = []
    for step in run.steps:
        if step.say is not None:
            texts.append(Text(step.say))
        else:
            turns.append(Message([*texts, _tool(step, folder, written)]))
            texts = []
    return [*turns, Message(texts)]


def _tool(step: Step, folder: Path, written: set[str]) -> Tool:
    text = step.text.removeprefix("\n")
    if step.run is not None:
        return Tool("Bash", {"command": step.run})
    if step.append is not None:
        return _here_document(">>", step.append, text)
    assert step.write is not None
    if step.write in written:
        return _here_document(">", step.write, text)
    if step.write in _FILES:  # removed at the end of each round
        return Tool("Write", {"file_path": step.write, "content": text})
    written.add(step.write)
    return Tool("Write", {"file_path": str(folder / step.write), "content": text})


def _here_document(arrow: str, file: str, text: str) -> Tool:
    return Tool("Bash", {"command": f"cat {arrow} {file} <<'{_END}'\n{text}{_END}"})


def _with_paths(reply: Reply, request: ModelRequest, folder: Path) -> Reply:
    """The reply with the session's files put in, as this request names them."""
    if not isinstance(reply, Message):
        return reply
    return replace(reply, blocks=[_filled(block, request, folder) for block in reply.blocks])


def _filled(block: Block, request: ModelRequest, folder: Path) -> Block:
    if not isinstance(block, Tool) or block.input.get("file_path") not in _FILES:
        return block
    # An agent without a system prompt of its own gets it in front of the first prompt.
    prompts = f"{request.system_text}\n{request.messages_text}"
    named = _FILES[block.input["file_path"]].search(prompts)
    assert named is not None, "the system prompt does not name the file"
    return replace(block, input={**block.input, "file_path": str(folder / named[0])})
