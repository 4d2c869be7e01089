"""The private home of a Gemini CLI session: its own files, and those kept from the user's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from cuggino.agents.gemini.config import (
    GUARDED,
    Home,
    as_said,
    context_of_project,
    fits_command,
    is_verbatim,
    session_settings,
)
from cuggino.errors import ConfigError


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """Return the user's home, with a login and an extension."""
    gemini = tmp_path / "user" / ".gemini"
    (gemini / "extensions").mkdir(parents=True)
    (gemini / "oauth_creds.json").write_text("{}")
    return tmp_path / "user"


@pytest.fixture
def home(user: Path) -> Iterator[Home]:
    with ExitStack() as stack:
        made = Home({"HOME": str(user)}, stack)
        yield made
    assert not made.path.exists()
    assert (user / ".gemini" / "oauth_creds.json").read_text() == "{}"


def test_linked_files(home: Home, user: Path) -> None:
    """The user's files are available, and sessions are stored with them."""
    assert (home.gemini / "oauth_creds.json").resolve() == user / ".gemini" / "oauth_creds.json"
    (home.gemini / "tmp" / "session").write_text("x")
    assert "x" == (user / ".gemini" / "tmp" / "session").read_text()
    assert home.temp.is_dir()


def test_a_file_of_the_session(home: Home, user: Path) -> None:
    """Files written for the session do not change the user's."""
    home.write("oauth_creds.json", "mine")
    home.write("extensions/x/y.md", "mine")
    assert [] == list((user / ".gemini" / "extensions").iterdir())
    assert "mine" == (home.gemini / "extensions" / "x" / "y.md").read_text()


def test_settings_with_comments(home: Home, user: Path) -> None:
    """The user's settings may contain comments."""
    text = '{"a": "http://x", /* c\n */ "b": ["/*", "\\"//"] // end\n}'
    (user / ".gemini" / "settings.json").write_text(text)
    assert {"a": "http://x", "b": ["/*", '"//']} == home.user_settings()


def test_unreadable_settings(home: Home, user: Path) -> None:
    """Broken settings are reported, not ignored."""
    (user / ".gemini" / "settings.json").write_text("{")
    with pytest.raises(ConfigError, match=r"settings\.json cannot be read"):
        home.user_settings()


@pytest.mark.parametrize(
    ("project", "settings", "expected"),
    [
        (None, {}, "GEMINI.md"),
        (None, {"context": {"fileName": "AGENTS.md"}}, "AGENTS.md"),
        ({"context": {"fileName": ["A.md", "B.md"]}}, {"context": {"fileName": "C.md"}}, "A.md"),
        ({"context": {"fileName": "docs/A.md"}}, {}, "docs/A.md"),
        ({"context": {"fileName": "../A.md"}}, {}, "GEMINI.md"),
    ],
)
def test_the_context_file(
    home: Home, tmp_path: Path, project: Any, settings: Any, expected: str
) -> None:
    """The system prompt is in the context file that the program reads in this project."""
    if project is not None:
        (tmp_path / "p" / ".gemini").mkdir(parents=True)
        (tmp_path / "p" / ".gemini" / "settings.json").write_text(json.dumps(project))
    home.write_context("Told.", settings=context_of_project(tmp_path / "p") or settings)
    assert "Told.\n" == (home.gemini / expected).read_text()


def test_the_users_own_context(home: Home, user: Path) -> None:
    """The user's own context is kept."""
    (user / ".gemini" / "GEMINI.md").write_text("Mine.")
    home.write_context("A ``` and @me.", settings={})
    assert "````\nA ``` and @me.\n````\n\nMine." == (home.gemini / "GEMINI.md").read_text()
    assert "Mine." == (user / ".gemini" / "GEMINI.md").read_text()


@pytest.mark.parametrize(
    ("prompt", "verbatim", "fits"),
    [
        ("Do it.", True, True),
        ("--help", True, True),
        ("/help", True, True),
        ("see @app.py", False, True),
        ("@x {{args}} {{args}}", False, True),
        ("@x !{ls}", False, True),
        ("x !{ls} @{y}", False, False),
    ],
)
def test_prompts(home: Home, prompt: str, verbatim: bool, fits: bool) -> None:
    """A prompt that the program would alter is passed as a command, if possible."""
    assert (verbatim, fits) == (is_verbatim(prompt), fits_command(prompt))
    words = home.write_command(prompt)
    name, _, hidden = words.removeprefix("/").partition(" ")
    written = (home.gemini / "commands" / f"{name}.toml").read_text()
    text = json.loads(written.removeprefix("prompt = "))
    assert prompt == (text.replace("{{args}}", hidden) if hidden else text)


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [("Do it.", "Do it."), ("/do it", "\u200b/do it"), (" ?", "\u200b ?"), ("", "")],
)
def test_prompts_that_look_like_commands(prompt: str, expected: str) -> None:
    """A prompt that looks like a command still reaches the model."""
    assert expected == as_said(prompt)


def test_settings_of_a_session() -> None:
    """The user's settings are kept except for required ones; hooks and servers are added."""
    user = {
        "general": {"maxAttempts": 10, "vimMode": True},
        "hooks": {"BeforeTool": [1]},
        "mcpServers": {"a": {"command": "a"}},
    }
    settings = session_settings(
        user,
        {"ui": {"hideTips": True}, "general": {"vimMode": False}},
        env={"GEMINI_API_KEY": "k"},
        mcp_servers={"b": {"type": "http", "url": "u"}, "c": {"type": "sse", "url": "v"}},
        hooks={"BeforeTool": [2], "SessionStart": [3]},
        more=GUARDED,
    )
    assert (3, False) == (settings["general"]["maxAttempts"], settings["general"]["vimMode"])
    assert {"BeforeTool": [1, 2], "SessionStart": [3]} == settings["hooks"]
    assert {"a": {"command": "a"}, "b": {"httpUrl": "u"}, "c": {"url": "v"}} == settings[
        "mcpServers"
    ]
    assert {"selectedType": "gemini-api-key"} == settings["security"]["auth"]
    assert (True, True) == (
        settings["hooksConfig"]["enabled"],
        settings["advanced"]["ignoreLocalEnv"],
    )
    assert {"general": {"maxAttempts": 10, "vimMode": True}} == {"general": user["general"]}


def test_the_chosen_login() -> None:
    """The user's login method is kept."""
    user = {"security": {"auth": {"selectedType": "oauth-personal"}}}
    settings = session_settings(user, {}, env={"GEMINI_API_KEY": "k"}, mcp_servers={}, hooks={})
    assert {"selectedType": "oauth-personal"} == settings["security"]["auth"]
    assert {} == settings["hooks"]


@pytest.mark.parametrize("user", [{"security": None}, {"security": {"auth": None}}])
def test_null_settings(user: dict[str, Any]) -> None:
    """A null object in the user's settings counts as empty."""
    env = {"GEMINI_API_KEY": "k"}
    made = session_settings(user, {}, env=env, mcp_servers={}, hooks={})
    assert {"auth": {"selectedType": "gemini-api-key"}} == made["security"]
