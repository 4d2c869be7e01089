"""The guard files of a Gemini session, which none of its tools may change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from cuggino.agents.gemini.config import Home
from cuggino.agents.gemini.guard import SessionGuard, prepare_guard
from cuggino.agents.gemini.hook import answer
from cuggino.agents.gemini.wire import Exits
from cuggino.guard.roles import role_policy

ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nowhere"}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with ExitStack() as stack:
        made = Home({"HOME": str(tmp_path)}, stack)
        yield made


@pytest.fixture(params=["roles", "full"])
def guard(home: Home, tmp_path: Path, request: pytest.FixtureRequest) -> SessionGuard:
    """Return a guarded session with all its files."""
    (tmp_path / "p").mkdir()
    policy = role_policy("implementing", project=tmp_path / "p", level=request.param)
    home.distrust()
    home.keep("rules.toml", "")
    Exits(home.own)
    return prepare_guard(policy, ENV, home)[0]


def decision(guard: SessionGuard, tool: str, **given: Any) -> str:
    orders = guard.guard.judge
    settings: dict[str, Any] = {"servers": [], "marked": [], "readable": []}
    data = {"hook_event_name": "BeforeTool", "tool_name": tool, "tool_input": given}
    data |= {"cwd": orders.policy.project}
    return str(answer(data, orders, settings)[0]["decision"])


def test_location(guard: SessionGuard, home: Home) -> None:
    """The files are in one private folder with a name unique to the session."""
    assert {
        *("guard.sh", "verdicts.jsonl", "rules.toml", "trusted.json"),
        *("exits", "exits.sh"),
    } == {file.name for file in home.own.iterdir()}
    assert {".gemini", "tmp", home.own.name} == {file.name for file in home.path.iterdir()}
    assert 0o700 == home.own.stat().st_mode & 0o777
    assert home.path.name in home.own.name != home.path.name


def test_writing(guard: SessionGuard, home: Home) -> None:
    """Neither the files nor the folder can be written, replaced or removed, under any name."""
    for path in (*home.own.iterdir(), home.own / "exits" / "1.json", home.own / "new", home.own):
        assert "deny" == decision(guard, "write_file", file_path=str(path), content="x"), path
        assert "deny" == decision(guard, "replace", file_path=str(path)), path
        for command in (
            *(f"echo x > {path}", f"echo x >> {path}", f"cp a {path}", f"rm -rf {path}"),
            *(f"mv {path} a", f"ln -sf /a {path}", f"sed -i s/a/b/ {path}", f"tee {path}"),
            *(f"cd {path.parent} && echo x > {path.name}", f"touch {path}"),
            f"echo x > {home.temp}/../{path.relative_to(home.path)}",
        ):
            assert "deny" == decision(guard, "run_shell_command", command=command), command
    for command in (
        f"echo x > {home.path}/*/guard.sh",
        f"ln -s {home.own} {home.temp}/a && echo x > {home.temp}/a/guard.sh",
        f"cd {home.temp} && ln -s ../{home.own.name} a && echo x > a/guard.sh",
        f"mv {home.path} {home.path}2 && echo x > {home.path}2/{home.own.name}/guard.sh",
    ):
        assert "deny" == decision(guard, "run_shell_command", command=command), command
    (home.temp / "link").symlink_to(home.own)
    by_link = str(home.temp / "link" / "guard.sh")
    assert "deny" == decision(guard, "write_file", file_path=by_link, content="x")
    assert "deny" == decision(guard, "run_shell_command", command=f"echo x > {by_link}")


def test_scratch_files(guard: SessionGuard, home: Home) -> None:
    """The folder for temporary files stays writable."""
    place = str(home.temp / "scratch.txt")
    assert "allow" == decision(guard, "write_file", file_path=place, content="x")
    assert "allow" == decision(guard, "run_shell_command", command=f"echo x > {place}")
