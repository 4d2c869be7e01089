"""The recorded runs of Lopen's loop, played by a scripted agent through the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.cli import Cli
from tests.cli.keyboard import ENTER, Setup
from tests.cli.loops import project_of
from tests.vectors import rows

Row = dict[str, Any]

ROWS = {row["id"]: row for row in rows("lopen_loop")}
_GOES_ON = frozenset({"ll-011", "ll-027", "ll-028", "ll-030", "ll-036"})
"""Runs without a recorded end: so many sessions are recorded, and there may be no more."""
ELSEWHERE = frozenset({"ll-007", "ll-022", "ll-023", "ll-024"})
"""Interrupted ones are in `test_loop_interrupt.py`; those with the pauses of retries are played
in virtual time in `tests/loops`."""


def _steps(session: Row) -> list[Row]:
    if "chunks" not in session:
        return [{"say": json.dumps(session)}]
    steps: list[Row] = [{"say": chunk} for chunk in session["chunks"]]
    for effect in session.get("effects", ()):
        steps.append({"write": effect["path"], "text": effect["content"]})
    return steps


def _scenario(row: Row) -> str:
    """Return a row's sessions as a scripted agent's scenario."""
    plans = row["answer"] != "3" and "PLAN.PROMPT.md" in {*row["files"], *_named(row)}
    roles = ["plan" if plans and n == 0 else "build" for n, _ in enumerate(row["sessions"])]
    played = [*zip(roles, row["sessions"], strict=True)]
    played += [("judge", answer) for answer in row["verifications"]]
    text = ""
    for role, session in played:
        text += f"[[{role}]]\n"
        for step in _steps(session):
            text += f"[[{role}.steps]]\n"
            text += "".join(f"{key} = {json.dumps(value)}\n" for key, value in step.items())
    return text


def _named(row: Row) -> list[str]:
    return ["PLAN.PROMPT.md"] if "--config" in row["args"] else []


@pytest.mark.parametrize("name", sorted(ROWS.keys() - ELSEWHERE))
def test_recorded_runs(name: str, looping: Path, typed: Setup, cli: Cli) -> None:
    """A recorded run prints the recorded output and ends with Lopen's exit code."""
    row = ROWS[name]
    agent = "scripted:scenario.toml" if row.get("agent_available", True) else "claude"
    project_of(
        looping,
        _scenario(row),
        branch=row["head"].removeprefix("ref: refs/heads/"),
        agent=agent,
        agentPath=None if agent != "claude" else "/nowhere/claude",
        guard="off",
    )
    for prompt in ("PLAN.PROMPT.md", "BUILD.PROMPT.md"):
        (looping / prompt).unlink()
    (looping / "docs" / "requirements" / "m" / "SPECIFICATION.md").unlink()
    for path, content in {
        **row["files"],
        ".lopen/loop-config.json": json.dumps(row["config"]),
    }.items():
        (looping / path).parent.mkdir(parents=True, exist_ok=True)
        (looping / path).write_text(content, encoding="utf-8")
    args = ["loop", "--compat-exit-codes", *row["args"]]
    if name in _GOES_ON:
        args += ["--max-iterations", str(len(row["sessions"]))]
    answers = "" if row["answer"] is None else row["answer"] + ENTER
    code = typed(answers + (answers + answers if name == "ll-016" else ""), *args)
    expected = row["expected"]
    out, err = cli.printed()
    if "exit" in expected:
        assert expected["exit"] == code
    for text in expected.get("contains", ()):
        assert text in out + err
    for text in expected.get("not_contains", ()):
        assert text not in out + err
    assert expected.get("iterations", out.count("Completed")) == out.count("Completed iteration")
    started = out.count("Mode: PLAN") + out.count("Mode: BUILD")
    assert expected.get("sessions", started) == started
