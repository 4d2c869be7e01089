"""The guard on the real Claude Code CLI when it is broken or switched off: then nothing runs."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cuggino.agents.guard import make_guard
from cuggino.errors import GuardNotLive
from cuggino.security import hook
from tests.agents.guarded import SPEC, Guarded, bash, claude
from tests.model_server import Tool

__all__ = ["claude"]

pytestmark = pytest.mark.real_agent

Change = Callable[..., None]

OFF: list[dict[str, Any]] = [
    {"disableAllHooks": True},
    {"allowManagedHooksOnly": True},
    {"hooks": {}},
    {"permissions": {"defaultMode": "bypassPermissions", "allow": ["Bash", "Write", "Edit"]}},
]


@pytest.fixture
def change(monkeypatch: pytest.MonkeyPatch) -> Change:
    """Lets the guard of the sessions differ in some fields from what it is."""

    def change(**fields: Any) -> None:
        made = lambda *given: replace(make_guard(*given), **fields)  # noqa: E731
        monkeypatch.setattr("cuggino.agents.claude.agent.make_guard", made)

    return change


def interpreter(folder: Path, fault: str) -> str:
    """A stand-in for the hook's interpreter: `fault` happens once the file `now` exists."""
    program = folder / "python"
    program.write_text(f"#!/bin/sh\nif test -e {folder}/now; then {fault}; fi\n")
    with program.open("a") as file:
        file.write(f'exec {sys.executable} "$@"\n')
    program.chmod(0o755)
    return str(program)


FAULTS = {
    "killed": "kill -9 $$",
    "crashed": "echo Traceback >&2; exit 1",
    "silent": "exit 0",
    "nonsense": "echo all is well; exit 0",
    "half an answer": "printf '{\"hookSpecificOutput\"'; exit 0",
    "says no word before it is killed": 'printf "{}"; kill -9 $$',
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_a_hook_that_fails(claude: Guarded, tmp_path: Path, change: Change, fault: str) -> None:
    """From its first failure on no tool runs, the model is told so, and the session goes on."""
    change(python=interpreter(tmp_path, fault))

    def break_it() -> list[Tool]:
        (tmp_path / "now").touch()
        target = claude.path("two.txt")
        return [bash("echo two > two.txt"), Tool("Write", {"file_path": target, "content": "2"})]

    done = claude.run(bash("echo one > one.txt"), break_it, bash("echo three > three.txt"))
    assert done.error is None
    assert ["one\n", None, None] == [claude.read(f"{n}.txt") for n in ("one", "two", "three")]
    assert ["Bash", "Write", "Bash"] == [denied.tool for denied in done.denied]
    assert 3 == done.told.count("hook error: The guard could not judge this call")
    assert [False, True, True, True] == [result.is_error for result in done.results]


def test_a_hook_without_a_verdict(claude: Guarded, tmp_path: Path, change: Change) -> None:
    """Without a word of the guard the program lets nothing write, and what it lets read is seen."""
    change(python=interpreter(tmp_path, "echo {}; exit 0"))

    def break_it() -> Tool:
        (tmp_path / "now").touch()
        return bash("echo two > two.txt")

    done = claude.run(bash("echo one > one.txt"), break_it, bash("ls"), bash("ls -a"))
    assert isinstance(done.error, GuardNotLive)
    assert "Bash was used without its verdict" in done.error.message
    assert ["one\n", None] == [claude.read(f"{n}.txt") for n in ("one", "two")]
    assert [False, True, False] == [result.is_error for result in done.results]
    assert "failed" == done.ended.outcome


def test_a_hook_that_is_slow(claude: Guarded, tmp_path: Path, change: Change) -> None:
    """A hook that does not answer in its time is taken for a no."""
    change(python=interpreter(tmp_path, "sleep 60"), timeout=2)

    def break_it() -> Tool:
        (tmp_path / "now").touch()
        return bash("echo two > two.txt")

    done = claude.run(bash("echo one > one.txt"), break_it)
    assert done.error is None
    assert ["one\n", None] == [claude.read(f"{n}.txt") for n in ("one", "two")]
    assert ["Bash"] == [denied.tool for denied in done.denied]
    assert "timed out" in done.told


def test_a_hook_that_is_deleted(claude: Guarded, tmp_path: Path, change: Change) -> None:
    """When the guard's files are gone no tool runs any more."""
    package = Path(hook.__file__).parents[1]
    shutil.copytree(package, tmp_path / "site" / "cuggino")
    change(program=str(tmp_path / "site" / "cuggino" / "security" / "hook.py"))

    def delete() -> Tool:
        shutil.rmtree(tmp_path / "site")
        return bash("echo two > two.txt")

    done = claude.run(bash("echo one > one.txt"), delete)
    assert done.error is None
    assert ["one\n", None] == [claude.read(f"{n}.txt") for n in ("one", "two")]
    assert "hook error: The guard could not judge this call" in done.told
    assert 1 == len(done.denied)


def test_a_parser_that_is_deleted(claude: Guarded, tmp_path: Path, change: Change) -> None:
    """Without the parser no command runs, and what needs no parser still does."""
    parser = tmp_path / "shfmt"
    shutil.copy(make_guard(claude.policy()).shfmt, parser)
    change(shfmt=str(parser))

    def delete() -> list[Tool]:
        parser.unlink()
        target = claude.path("three.txt")
        return [bash("echo two > two.txt"), Tool("Write", {"file_path": target, "content": "3"})]

    done = claude.run(bash("echo one > one.txt"), delete)
    assert done.error is None
    assert ["one\n", None, "3"] == [claude.read(f"{n}.txt") for n in ("one", "two", "three")]
    assert ["Bash"] == [denied.tool for denied in done.denied]


@pytest.mark.parametrize("name", ["settings.json", "settings.local.json"])
@pytest.mark.parametrize("switch", OFF, ids=lambda switch: next(iter(switch)))
def test_settings_at_the_start(claude: Guarded, switch: dict[str, Any], name: str) -> None:
    """Settings of the project do not switch the guard off."""
    write_settings(claude, switch, name)
    done = claude.run([bash("echo yes > new.txt"), bash("echo no > .specs/task.md")])
    assert done.error is None
    assert ("yes\n", SPEC) == (claude.read("new.txt"), claude.read(".specs/task.md"))
    assert 1 == len(done.denied)


@pytest.mark.parametrize("name", ["settings.json", "settings.local.json"])
@pytest.mark.parametrize("switch", OFF, ids=lambda switch: next(iter(switch)))
def test_settings_in_the_midst(claude: Guarded, switch: dict[str, Any], name: str) -> None:
    """Settings that are written while the session runs do not switch it off either."""

    def write() -> Tool:
        write_settings(claude, switch, name)
        return bash("python3 -c 'import time; time.sleep(1.5)'")  # the program looks for changes

    done = claude.run(
        write, [bash("echo yes > new.txt"), bash("echo no > .specs/task.md")], bash("true")
    )
    assert done.error is None
    assert ("yes\n", SPEC) == (claude.read("new.txt"), claude.read(".specs/task.md"))
    assert 1 == len(done.denied)


def write_settings(claude: Guarded, settings: dict[str, Any], name: str) -> None:
    (claude.project / ".claude").mkdir(exist_ok=True)
    (claude.project / ".claude" / name).write_text(json.dumps(settings))


def test_settings_that_the_program_drops(claude: Guarded) -> None:
    """One bad value drops all settings in silence: the session ends before its first tool."""
    settings = {"permissions": {"allow": 3}}
    done = claude.run(bash("echo one > one.txt"), settings=settings)
    assert isinstance(done.error, GuardNotLive)
    assert "did not run its hook at the start" in done.error.message
    assert "doctor" in (done.error.hint or "")
    assert claude.read("one.txt") is None
    assert [] == done.results
    assert "failed" == done.ended.outcome


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"python": "/nonexistent/python"}, "could not be run"),
        ({"program": "/nonexistent/hook.py"}, "could not be run"),
        ({"shfmt": "/nonexistent/shfmt"}, "it answers deny to `echo ready`"),
    ],
    ids=["python", "hook", "parser"],
)
def test_a_canary_that_does_not_sing(
    claude: Guarded, change: Change, fields: dict[str, str], why: str
) -> None:
    """What does not work at the start ends the session before its first tool, and says why."""
    change(**fields)
    done = claude.run(bash("ls"))
    assert isinstance(done.error, GuardNotLive)
    assert why in done.error.message
    assert [] == done.results
