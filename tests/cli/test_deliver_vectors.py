"""The recorded command lines of Autonoe: parsed as recorded, or listed as exceptions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cuggino import Runtime
from cuggino.errors import ConfigError
from cuggino_cli.main import main
from cuggino_cli.options.deliver import (
    max_iterations,
    max_retries,
    project_folder,
    thinking_tokens,
    whole_number,
)
from tests.cli.deliveries import Loop
from tests.vectors import not_followed, rows

Row = dict[str, Any]

ROWS = {row["id"]: row for row in rows("cli_options")}
NOT_FOLLOWED = not_followed("cli_options")
_GIVEN = {"projectDir": "-p", "maxIterations": "-n", "maxRetries": "--max-retries"}


def _answer(row: Row, folder: Path, loop: Loop, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return our result for a row's arguments in the recorded form."""
    args = json.loads(json.dumps(row["args"]).replace("<DIR>", str(folder)))
    match row["fn"]:
        case "validate_project_dir":
            return _is_good(lambda: project_folder(args[0]))
        case "parse_numeric_option":
            number = whole_number(args[0])
            return number if number is not None else "refused"
        case "parse_thinking_option" if args == [False]:
            main(["deliver"])
            return {"type": "disabled" if loop.options[0].thinking is None else "enabled"}
        case "parse_thinking_option" if args == [True]:
            main(["deliver", "--thinking"])
            return {"type": "enabled", "tokens": loop.options[0].thinking}
        case "parse_thinking_option":
            try:
                return {"type": "enabled", "tokens": thinking_tokens(args[0])}
            except ValueError as error:
                return {"type": "error", "error": str(error)}
        case "check_spec_exists" | "validate_prerequisites":
            exists = row["fn"] == "validate_prerequisites"
            if not exists:
                (folder / "SPEC.md").unlink()
            good = _is_good(Runtime.live(cwd=folder).deliverer.check)
            return {"success": good} if exists else good
        case _:
            return _validated(row, *args, loop=loop, monkeypatch=monkeypatch)


def _is_good(look: Any) -> bool:
    try:
        look()
    except (ValueError, ConfigError):
        return False
    return True


def _validated(
    row: Row,
    given: Row,
    env: dict[str, str] | None = None,
    *,
    loop: Loop,
    monkeypatch: pytest.MonkeyPatch,
) -> Row:
    """Return the options in the recorded form."""
    for name, value in (env or {}).items():
        monkeypatch.setenv(name, value)
    args = [word for key, flag in _GIVEN.items() if key in given for word in (flag, given[key])]
    args += ["--thinking", given["thinking"]] if "thinking" in given else []
    args += ["--no-sandbox"] if given.get("sandbox") is False else []
    sync = ["sync"] if row["fn"] == "validate_sync_options" else []
    if main(["deliver", *sync, *args]) != 0:
        reads = {"projectDir": project_folder, "maxIterations": max_iterations}
        more: dict[str, Any] = {"maxRetries": max_retries, "thinking": thinking_tokens}
        return {"success": False, "error": _complaint(given, {**reads, **more})}
    (options,) = loop.options
    by_flag = given.get("sandbox") is False
    source = "default" if options.sandbox != "off" else "cli" if by_flag else "env"
    answer = {
        "projectDir": str(options.cwd),
        "maxIterations": options.max_sessions,
        "maxRetries": options.max_retries,
        "debug": False,
        "waitForQuota": options.wait_for_quota,
        "allowDestructive": options.allow_destructive,
        "sandboxMode": {"disabled": options.sandbox == "off", "source": source},
    }
    told = row["expected"].get("options", {})
    return {"success": True, "options": {key: answer[key] for key in told}}


def _complaint(given: Row, reads: dict[str, Any]) -> str:
    for key, read in reads.items():
        try:
            if key in given:
                read(given[key])
        except ValueError as error:
            return str(error)
    return ""


@pytest.mark.parametrize("name", ROWS)
def test_recorded_options(
    name: str, delivered: Path, loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recorded command line is parsed as recorded, unless its row is an exception."""
    row = ROWS[name]
    if row["fn"] in ("create_sandbox_mode", "get_sandbox_warning_message"):
        assert row["rev"] == "head"  # in tests/guard/test_agent_settings.py
        return
    (delivered / "file.txt").touch()
    expected = json.loads(json.dumps(row["expected"]).replace("<DIR>", str(delivered)))
    answer = _answer(row, delivered, loop, monkeypatch)
    assert (expected == answer) == (name not in NOT_FOLLOWED)


def test_every_row_is_read() -> None:
    """The data has all recorded rows."""
    assert 43 == len(ROWS)
