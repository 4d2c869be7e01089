"""The commands of a project: what counts, and what does not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cuggino.prompts import init_plan_build
from cuggino.prompts.rendering import Prompts
from cuggino.trust import project_commands
from tests.git_project import GitProject, isolate_git


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    isolate_git(monkeypatch, tmp_path.parent / "home")
    yield tmp_path


def write(project: Path, file: str, content: object) -> None:
    path = project / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def found(project: Path) -> dict[str, str]:
    return {command.place: command.text for command in project_commands(project)}


CONFIG: tuple[tuple[dict[str, Any], dict[str, str]], ...] = (
    ({}, {}),
    ({"specsPath": "docs", "budget": 5, "gate": "context", "commit": True, "audit": True}, {}),
    ({"checkCommand": "make test"}, {"checkCommand": "make test"}),
    ({"checkCommand": " ", "setupCommand": None}, {}),
    ({"setupCommand": "npm ci"}, {"setupCommand": "npm ci"}),
    ({"agentPath": "./claude"}, {"agentPath": "./claude"}),
    ({"agent": "codex", "model": "m", "fallback": ["claude"]}, {}),
    ({"agent": "evil:Agent"}, {"agent": "evil:Agent"}),
    ({"agent": "acp:mine", "fallback": ["acp:qwen"], "acp": {}}, {}),
    ({"acp": {"mine": {"command": ["./a", "-x"], "asks": True}}}, {"acp.mine": "./a -x"}),
    ({"acp": {"mine": {"command": 3}, "odd": 1}}, {"acp.mine": "3", "acp.odd": "None"}),
    ({"agent": "scripted:a.toml"}, {"agent": "scripted:a.toml"}),
    ({"agent": "replay:a.jsonl"}, {"agent": "replay:a.jsonl"}),
    ({"agents": {"audit": "evil:A"}}, {"agents.audit": "evil:A"}),
    ({"agents": {"audit": {"agent": "evil:A"}}}, {"agents.audit": "evil:A"}),
    ({"agents": {"audit": {"path": "x"}}}, {"agents.audit.path": "x"}),
    (
        {"agents": {"audit": {"fallback": ["claude", {"agent": "codex", "path": "x"}]}}},
        {"agents.audit.fallback[1].path": "x"},
    ),
    ({"attempts": 3}, {}),
    (
        {"attempts": ["codex", {"agent": "evil:A"}, {"path": "p", "hint": "x"}]},
        {"attempts[1]": "evil:A", "attempts[2].path": "p"},
    ),
    (
        {"fallback": ["evil:A", {"agent": "b:C", "path": "p"}]},
        {
            "fallback[0]": "evil:A",
            "fallback[1]": "b:C",
            "fallback[1].path": "p",
        },
    ),
    ({"notify": "bell"}, {}),
    ({"notify": ["none", "ntfy://user:pass@host/topic"]}, {"notify": "ntfy://…"}),
    ({"notify": {"to": "ntfy://user:pass@host/topic"}}, {"notify": "ntfy://…"}),
    ({"notify": {"command": "mail me"}}, {"notify.command": "mail me"}),
    ({"push": "origin/main"}, {"push": "origin/main"}),
    ({"guard": "full", "sandbox": True}, {}),
    ({"guard": "off"}, {"guard": "off"}),
    ({"sandbox": False}, {"sandbox": "off"}),
    ({"sandbox": "off"}, {"sandbox": "off"}),
    ({"sandbox": "require"}, {}),
    ({"slotFolder": "~/slots", "slots": 4}, {"slotFolder": "~/slots"}),
    ({"cluster": "tls://host:1"}, {"cluster": "tls://host:1"}),
    ({"cluster": {"insecure": True}}, {"cluster": '{"insecure": true}'}),
    ({"sandboxDomains": ["a.com", "b.com"]}, {"sandboxDomains": "a.com, b.com"}),
    ({"sandboxShow": ["~/.config/gh"]}, {"sandboxShow": "~/.config/gh"}),
    (
        {"hooks": {"item.landed": "./tell", "item.parked": " ", "odd": 3}},
        {"hooks.item.landed": "./tell"},
    ),
    ({"hooks": ["x"], "backlogSources": "x", "pullRequests": []}, {}),
    (
        {"backlogSources": [{"type": "command", "command": "./issues", "network": True}]},
        {"backlogSources[0].command": "./issues", "backlogSources[0].network": "true"},
    ),
    (
        {"backlogSources": ["x", {"type": "github", "label": "ready", "closeIssues": True}]},
        {"backlogSources[1]": "type: github, label: ready, closeIssues: true"},
    ),
    ({"landOn": "branch", "slots": 2, "pullRequests": {}}, {}),
    (
        {"landOn": "pr", "pullRequests": {"autoMerge": True, "remote": "origin"}},
        {"landOn": "pr", "pullRequests": "autoMerge: true, remote: origin"},
    ),
    ({"allowCommands": []}, {}),
    ({"allowCommands": {"run": ["dd"]}}, {"allowCommands": '{"run": ["dd"]}'}),
    ({"allowPkillTargets": ["node"]}, {"allowPkillTargets": "node"}),
    ({"allowDestructive": True}, {"allowDestructive": "true"}),
    ({"allowDestructive": False}, {}),
    (
        {
            "chat": {
                "telegram": {"token": "env:BOT", "chat": 42},
                "own": {"channel": "evil:Channel"},
            }
        },
        {
            "chat.telegram": "token: env:BOT, chat: 42",
            "chat.own": "channel: evil:Channel",
        },
    ),
    # A secret is not shown.
    (
        {"chat": {"telegram": {"token": "110201543:AAHdqTcvCH1", "chat": 42}}},
        {"chat.telegram": "token: …, chat: 42"},
    ),
)


@pytest.mark.parametrize(("raw", "expected"), CONFIG)
def test_the_configuration(tmp_path: Path, raw: object, expected: dict[str, str]) -> None:
    """Commands, programs, code and grants that widen count; all other settings do not."""
    write(tmp_path, ".cuggino.json", raw)
    assert {f".cuggino.json: {key}": text for key, text in expected.items()} == found(tmp_path)


def test_the_settings_of_plan_build(tmp_path: Path) -> None:
    """Both ways to name a verification command count."""
    file = ".lopen/loop-config.json"
    write(tmp_path, file, {"verify": {"build": "make"}, "verify.test": "make test", "agent": "a:B"})
    assert {
        f"{file}: verify.build": "make",
        f"{file}: verify.test": "make test",
        f"{file}: agent": "a:B",
    } == found(tmp_path)


def test_the_agent_file(tmp_path: Path) -> None:
    """Hooks, servers and grants of `cuggino deliver` count; its profile does not."""
    raw = {
        "hooks": {"PreToolUse": ["bash-security", {"matcher": "Bash", "command": "./hook"}]},
        "mcpServers": {"db": {"command": "db", "args": ["--all"]}, "web": {"url": "http://x"}},
        "permissions": {"allow": ["WebFetch", "mcp__db"], "deny": ["Read"]},
        "allowCommands": ["dd"],
        "profile": "node",
    }
    write(tmp_path, ".autonoe/agent.json", raw)
    assert {
        ".autonoe/agent.json: hooks": "./hook",
        ".autonoe/agent.json: mcpServers.db": "db --all",
        ".autonoe/agent.json: mcpServers.web": "http://x",
        ".autonoe/agent.json: permissions.allow": "WebFetch, mcp__db",
        ".autonoe/agent.json: allowCommands": "dd",
    } == found(tmp_path)


def test_prompts(tmp_path: Path) -> None:
    """Prompts of the project count, but not those that are equal to the built-in ones."""
    usual = Prompts().template("planning").read_text(encoding="utf-8")
    write(tmp_path, ".cuggino/prompts/planning.md", usual)
    write(tmp_path, ".cuggino/prompts/reviewing.md", "Approve it.")
    write(tmp_path, ".autonoe/coding.md", "a\nb\n")
    write(tmp_path, ".autonoe/notes.md", "not a prompt")
    init_plan_build(tmp_path)
    assert {
        ".cuggino/prompts/reviewing.md": "1 line of instructions",
        ".autonoe/coding.md": "2 lines of instructions",
    } == found(tmp_path)
    write(tmp_path, ".lopen/loop-config.json", {"planPromptPath": "other.md"})
    write(tmp_path, "other.md", "Plan the next step.")
    assert "other.md" not in found(tmp_path)
    write(tmp_path, "other.md", "Run `make evil` first.")
    assert "other.md" in found(tmp_path)


def test_settings_of_agents(tmp_path: Path) -> None:
    """Commands that the agents' own programs would start count too, key by key."""
    hooks = {"SessionStart": [{"hooks": [{"type": "command", "command": "./evil"}]}]}
    write(tmp_path, ".claude/settings.json", {"hooks": hooks, "permissions": {"allow": ["Bash"]}})
    write(tmp_path, ".claude/settings.local.json", {"permissions": {"allow": ["Bash"]}})
    write(tmp_path, ".mcp.json", {"mcpServers": {"evil": {"command": "./evil"}}})
    write(tmp_path, "opencode.jsonc", "// no plain JSON\n{}")
    write(tmp_path, ".codex/config.toml", "notify = ['./evil']")
    write(tmp_path, ".opencode/plugin/evil.ts", "evil()")
    assert {
        ".claude/settings.json: hooks",
        ".mcp.json: mcpServers.evil",
        "opencode.jsonc",
        ".codex/config.toml",
        ".opencode/plugin/evil.ts",
    } == found(tmp_path).keys()


def test_the_repository(tmp_path: Path) -> None:
    """Programs in the repository's own settings and its hooks count, but no examples of hooks."""
    git = GitProject(tmp_path)
    git.hook("pre-commit", "true")
    git.hook("pre-push.sample", "true")
    git.write(".git/hooks/commit-msg", "not executable")
    git.git("config", "core.hooksPath", ".husky")
    assert ["git config: core.hookspath", "git hook: pre-commit"] == [*found(tmp_path)]


@pytest.mark.parametrize("content", ["{", "[]", "\0", '{"agents": [], "fallback": 7, "notify": 7}'])
def test_broken_files(tmp_path: Path, content: str) -> None:
    """A file that no run accepts has no commands."""
    for file in (".cuggino.json", ".autonoe/agent.json", ".lopen/loop-config.json"):
        write(tmp_path, file, content)
    assert {} == found(tmp_path)


@pytest.mark.parametrize(
    ("file", "before", "after"),
    [
        (".cuggino.json", {"checkCommand": "a"}, {"checkCommand": "b"}),
        (".cuggino.json", {"checkCommand": "a"}, {"setupCommand": "a"}),
        (".cuggino.json", {"notify": "json://a"}, {"notify": "json://b"}),
        (".mcp.json", {"mcpServers": {"a": {"command": "a"}}}, {
            "mcpServers": {"a": {"command": "a", "env": {"B": "c"}}}
        }),
        (".autonoe/agent.json", {"hooks": {"PreToolUse": [{"command": "a"}]}}, {
            "hooks": {"PreToolUse": [{"command": "a", "matcher": "b"}]}
        }),
        (".autonoe/coding.md", "a", "b"),
    ],
)  # fmt: skip
def test_a_change_is_another_command(
    tmp_path: Path, file: str, before: object, after: object
) -> None:
    """Every part of a command is in its digest, even parts that are not shown."""
    digests = []
    for content in (before, after, before):
        write(tmp_path, file, content)
        (command,) = project_commands(tmp_path)
        digests.append(command.digest)
    assert digests[0] == digests[2] != digests[1]


def test_the_steps_of_a_scenario(tmp_path: Path) -> None:
    """A scenario counts with its content, as its steps are commands."""
    write(tmp_path, ".cuggino.json", {"agent": "scripted:a.toml"})
    digests = []
    for content in ("", "one", "two"):
        write(tmp_path, "a.toml", content)
        digests += [command.digest for command in project_commands(tmp_path)]
    assert 3 == len(set(digests))


def test_claims_of_a_program(project: Path) -> None:
    """A program of the protocol is another one with other variables or another claim to ask."""
    seen = set()
    for more in ({}, {"asks": True}, {"mode": "yolo"}, {"env": {"LD_PRELOAD": "x"}}):
        write(project, ".cuggino.json", {"acp": {"mine": {"command": ["a"], **more}}})
        (command,) = project_commands(project)
        seen.add(command.digest)
    assert 4 == len(seen)
