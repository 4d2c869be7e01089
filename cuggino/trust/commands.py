"""The commands and permissions that a project gives to a run.

A command is identified by its words, not by the files that they name: `make test` stays the same
command when the Makefile changes. Scenarios, prompts and plugins are identified by their content,
as they have no other words. Specifications do not count, and neither do plan/build prompts without
code: both only describe the work.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from cuggino.config import AGENT_FILE, CONFIG_FILE, PLAN_BUILD_CONFIG_FILE, is_reference
from cuggino.files import read_json_object, read_regular
from cuggino.git import git_folder, program_settings
from cuggino.prompts import own_prompts

_RUN = ("setupCommand", "checkCommand", "agentPath", "push")
_GRANTS = (
    *("slotFolder", "cluster", "sandboxDomains", "sandboxShow"),
    *("allowCommands", "allowPkillTargets", "allowDestructive"),
)
_AGENT_GRANTS = ("allowedTools", "allowCommands", "allowPkillTargets")
_VERIFY = ("verify.build", "verify.test")
_WITH_FILE = ("scripted", "replay")
_STARTED_BY_AGENTS: Mapping[str, tuple[str, ...]] = {
    ".mcp.json": ("mcpServers",),
    ".claude/settings.json": (),
    ".claude/settings.local.json": (),
    ".gemini/settings.json": (),
    "opencode.json": (),
    "opencode.jsonc": (),
    ".opencode/opencode.json": (),
    ".opencode/opencode.jsonc": (),
}
"""Files with settings of agents, and their keys that start something; () for `_STARTING`."""
_STARTING = (
    *("hooks", "mcpServers", "mcp", "plugin", "enabledPlugins", "extraKnownMarketplaces"),
    *("statusLine", "apiKeyHelper", "awsAuthRefresh", "awsCredentialExport", "otelHeadersHelper"),
    *("env", "command", "formatter", "lsp", "tools", "extensions"),
)
_WHOLE = (
    *(".codex/config.toml", ".codex/hooks.json", ".qwen/settings.json"),
    *(".vibe/config.toml", ".kimi-code/config.toml"),
)
_PLUGINS = (".opencode/plugin", ".opencode/plugins", ".opencode/tool", ".opencode/tools")
_GIT_HOOKS = (
    *("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "pre-push"),
    *("post-checkout", "post-index-change", "reference-transaction", "post-merge", "pre-rebase"),
)
_IMPORT_PATH = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*", re.ASCII)


class ProjectCommand(NamedTuple):
    """Something that a project starts or allows."""

    place: str
    """The file and the key, such as `.cuggino.json: checkCommand`."""
    text: str
    """The command or a description of it, without passwords of URLs."""
    content: str = ""
    """Additional content that belongs to it, or the digest of a file."""

    @property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps(self).encode()).hexdigest()


def project_commands(project: Path) -> tuple[ProjectCommand, ...]:
    """Return all commands, each once, in the order in which a person would look for them.

    Only git is started, to list the settings of the repository. Unreadable files have no commands:
    a run cannot read them either.
    """
    found = (
        *_of_config(project),
        *_of_plan_build(project),
        *_of_agent_file(project),
        *_of_prompts(project),
        *_of_agent_settings(project),
        *_of_git(project),
    )
    return tuple(dict.fromkeys(found))


def _of_config(project: Path) -> Iterator[ProjectCommand]:
    raw = _object(project / CONFIG_FILE)
    for key in _RUN:
        if value := _text(raw, key):
            yield _command(CONFIG_FILE, key, value)
    yield from _agents(project, raw, CONFIG_FILE)
    yield from _programs(raw)
    yield from _of_forges(raw)
    notify = raw.get("notify")
    if isinstance(notify, dict):
        if command := _text(notify, "command"):
            yield _command(CONFIG_FILE, "notify.command", command)
        notify = notify.get("to")
    for way in notify if isinstance(notify, list) else [notify]:
        if isinstance(way, str) and "://" in way:
            scheme = way.partition("://")[0]
            yield ProjectCommand(f"{CONFIG_FILE}: notify", f"{scheme}://…", _digest(way.encode()))
    for name, settings in _table(raw, "chat").items():
        if isinstance(settings, dict) and settings:
            # A secret that stands there, by mistake, is not shown.
            hidden = {
                k: "…" for k in ("token", "topic") if not is_reference(settings.get(k, "env:"))
            }
            yield _command(CONFIG_FILE, f"chat.{name}", _settings({**settings, **hidden}), settings)
    if raw.get("guard") == "off":
        yield _command(CONFIG_FILE, "guard", "off")
    if raw.get("sandbox") in (False, "off"):
        yield _command(CONFIG_FILE, "sandbox", "off")
    yield from _grants(CONFIG_FILE, raw, _GRANTS)


def _of_forges(raw: Mapping[str, Any]) -> Iterator[ProjectCommand]:
    """Yield hooks, and settings that use the user's login for issues and pull requests."""
    hooks = _table(raw, "hooks")
    for name in hooks:
        if command := _text(hooks, name):
            yield _command(CONFIG_FILE, f"hooks.{name}", command)
    for number, source in enumerate(_list(raw, "backlogSources")):
        if isinstance(source, dict):
            place = f"backlogSources[{number}]"
            if command := _text(source, "command"):
                yield _command(CONFIG_FILE, f"{place}.command", command)
                yield from _grants(CONFIG_FILE, source, ("network",), f"{place}.")
            else:
                yield _command(CONFIG_FILE, place, _settings(source))
    if raw.get("landOn") == "pr":
        yield _command(CONFIG_FILE, "landOn", "pr")
    if requests := _table(raw, "pullRequests"):
        yield _command(CONFIG_FILE, "pullRequests", _settings(requests))


def _programs(raw: Mapping[str, Any]) -> Iterator[ProjectCommand]:
    """Yield the programs of the Agent Client Protocol, with their variables and claims."""
    for name, program in _table(raw, "acp").items():
        words = program.get("command") if isinstance(program, dict) else None
        text = " ".join(str(word) for word in words) if isinstance(words, list) else str(words)
        yield _command(CONFIG_FILE, f"acp.{name}", text, program)


def _agents(project: Path, raw: Mapping[str, Any], file: str) -> Iterator[ProjectCommand]:
    """Yield agents that are project code, and programs, wherever they are named."""
    for place, key, value in _choices(raw, ""):
        kind, colon, name = value.partition(":")
        if key == "agent" and colon and kind in _WITH_FILE:
            yield ProjectCommand(f"{file}: {place}", value, _file_digest(project / name))
        elif key == "path" or (kind != "acp" and _IMPORT_PATH.fullmatch(value)):
            yield _command(file, place, value)


def _choices(raw: Mapping[str, Any], where: str) -> Iterator[tuple[str, str, str]]:
    """Yield the place, `agent` or `path`, and the text of each choice of an agent."""
    if isinstance(name := raw.get("agent"), str):
        yield where.removesuffix(".") or "agent", "agent", name
    if where and isinstance(path := raw.get("path"), str):
        yield f"{where}path", "path", path
    others = [(f"agents.{role}", choice) for role, choice in _table(raw, "agents").items()]
    for key in ("fallback", "attempts"):
        others += [(f"{where}{key}[{number}]", it) for number, it in enumerate(_list(raw, key))]
    for place, choice in others:
        if isinstance(choice, str):
            yield place, "agent", choice
        elif isinstance(choice, dict):
            yield from _choices({**choice, "agents": None}, f"{place}.")


def _of_plan_build(project: Path) -> Iterator[ProjectCommand]:
    raw = _object(project / PLAN_BUILD_CONFIG_FILE)
    group = {f"verify.{key}": value for key, value in _table(raw, "verify").items()}
    for key in _VERIFY:
        if value := _text(group if raw.get(key) is None else raw, key):
            yield _command(PLAN_BUILD_CONFIG_FILE, key, value)
    yield from _agents(project, {"agent": raw.get("agent")}, PLAN_BUILD_CONFIG_FILE)


def _of_agent_file(project: Path) -> Iterator[ProjectCommand]:
    raw = _object(project / AGENT_FILE)
    for hook in _list(_table(raw, "hooks"), "PreToolUse"):
        if isinstance(hook, dict):
            yield _command(AGENT_FILE, "hooks", str(hook.get("command", "")), hook)
    yield from _servers(AGENT_FILE, raw)
    yield from _grants(AGENT_FILE, _table(raw, "permissions"), ("allow",), "permissions.")
    yield from _grants(AGENT_FILE, raw, _AGENT_GRANTS)


def _of_prompts(project: Path) -> Iterator[ProjectCommand]:
    settings = _object(project / PLAN_BUILD_CONFIG_FILE)
    keys = {"plan_prompt": "planPromptPath", "build_prompt": "buildPromptPath"}
    named = {
        name: value for name, key in keys.items() if isinstance(value := settings.get(key), str)
    }
    overrides = project / ".cuggino" / "prompts"
    for path, content in own_prompts(project, overrides, **named):
        if path.parent != project / ".autonoe" and path.parent != overrides and b"`" not in content:
            continue
        lines = len(content.splitlines())
        text = f"{lines} line{'s' * (lines != 1)} of instructions"
        yield ProjectCommand(_relative(path, project), text, _digest(content))


def _of_agent_settings(project: Path) -> Iterator[ProjectCommand]:
    for file, keys in _STARTED_BY_AGENTS.items():
        path = project / file
        raw = _object(path)
        if not raw and _file_digest(path) not in ("", _digest(b"{}")):
            yield ProjectCommand(file, "settings that are not plain JSON", _file_digest(path))
        for key in keys or _STARTING:
            if key == "mcpServers":
                yield from _servers(file, raw)
            elif raw.get(key):
                yield _command(file, key, _shown(raw[key]), raw[key])
    plugins = (path for folder in _PLUGINS for path in sorted((project / folder).glob("*")))
    for path in (*(project / file for file in _WHOLE), *plugins):
        if path.is_file():
            yield ProjectCommand(_relative(path, project), "code or settings", _file_digest(path))


def _of_git(project: Path) -> Iterator[ProjectCommand]:
    if not any((folder / ".git").exists() for folder in (project, *project.parents)):
        return
    for name, value in program_settings(project):
        yield ProjectCommand(f"git config: {name}", value or "")
    folder = git_folder(project)
    for path in [folder / "hooks" / name for name in _GIT_HOOKS] if folder is not None else ():
        if path.is_file() and os.access(path, os.X_OK):
            yield ProjectCommand(f"git hook: {path.name}", str(path), _file_digest(path))


def _servers(file: str, raw: Mapping[str, Any]) -> Iterator[ProjectCommand]:
    for name, server in _table(raw, "mcpServers").items():
        settings = server if isinstance(server, dict) else {}
        words = (settings.get("command"), settings.get("url"), *_list(settings, "args"))
        text = " ".join(str(word) for word in words if word)
        yield _command(file, f"mcpServers.{name}", text, server)


def _grants(
    file: str, raw: Mapping[str, Any], keys: tuple[str, ...], group: str = ""
) -> Iterator[ProjectCommand]:
    for key in keys:
        if raw.get(key):
            yield _command(file, f"{group}{key}", _shown(raw[key]))


def _command(file: str, key: str, text: str, whole: object = None) -> ProjectCommand:
    content = "" if whole is None else _digest(_shown(whole).encode())
    return ProjectCommand(f"{file}: {key}", text, content)


def _shown(value: object) -> str:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return value if isinstance(value, str) else json.dumps(value)


def _settings(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}: {_shown(value)}" for key, value in values.items())


def _table(raw: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the object under the key; an empty one for any other value."""
    value = raw.get(key)
    return value if isinstance(value, dict) else {}


def _list(raw: Mapping[str, Any], key: str) -> list[Any]:
    """Return the list under the key; an empty one for any other value."""
    value = raw.get(key)
    return value if isinstance(value, list) else []


def _text(raw: Mapping[str, Any], key: str) -> str:
    """Return the text under the key; "" for a blank one or any other value."""
    value = raw.get(key)
    return value if isinstance(value, str) and value.strip() else ""


def _object(path: Path) -> dict[str, Any]:
    try:
        return read_json_object(path)
    except (OSError, ValueError):
        return {}


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _file_digest(path: Path) -> str:
    try:
        return _digest(read_regular(path))
    except (OSError, ValueError):
        return ""


def _relative(path: Path, project: Path) -> str:
    return path.relative_to(project).as_posix() if path.is_relative_to(project) else str(path)
