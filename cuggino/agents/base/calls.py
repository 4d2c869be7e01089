# ruff: noqa: PTH118
"""Tool calls with Claude Code's names, and the guard's verdicts on them.

It needs only the standard library: the hook program imports it, once for every call of a tool.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

from cuggino.guard.policy import Policy
from cuggino.guard.tools import FILE_TOOLS, READERS, SHELLS, judge
from cuggino.guard.verdict import Verdict, denied

LIVE = "live"
"""The canary of a guard that works."""

_LONGEST_REASON = 2000
_LONGEST_PART = 500
_MOST_REASONS = 5


class Call(NamedTuple):
    """A tool call."""

    tool: str
    input: Any
    unknown: str = ""
    """The reason why its effect is unknown, or ""."""
    cwd: str | None = None
    """The folder in which it works, if it names one."""
    reads: tuple[str, ...] = ()
    """The files and folders that it reads."""

    def is_listed(self, names: Collection[str]) -> bool:
        """Return whether the names contain the tool, or its whole MCP server."""
        return self.tool in names or self.tool.rpartition("__")[0] in names


class Orders(NamedTuple):
    """What is needed to judge the calls of one session."""

    policy: Policy
    shfmt: str
    token: str
    """Identifies the verdicts of the session."""

    def canary(self) -> dict[str, Any]:
        """Judge one call that must be denied and one that must be allowed, with the real parser.

        The answer holds the token and the `canary`: `live`, or a sentence about the problem.
        """
        for command, expected in (("echo ready", "allow"), ("echo $(", "deny")):
            verdict = self.judge("Bash", {"command": command}, self.policy.project)
            if verdict.decision != expected:
                why = f": {verdict.reason}" if verdict.reason else ""
                problem = f"it answers {verdict.decision} to `{command}`{why}"
                return {"token": self.token, "canary": problem}
        return {"token": self.token, "canary": LIVE}

    def judge(self, tool: object, given: object, cwd: object) -> Verdict:
        """Judge a call by the policy without its rules; a call that cannot be judged is denied."""
        if not (isinstance(tool, str) and isinstance(given, Mapping) and isinstance(cwd, str)):
            return denied(str(tool), "The guard does not understand this call, so it is not run.")
        try:
            return judge(self.policy, tool, given, cwd, shfmt=self.shfmt)
        except Exception as error:
            why = f"The guard failed over this call ({type(error).__name__}), so it is not run."
            return denied(tool, f"{why} Put it in a plainer way, or do it in smaller steps.")

    def verdict(
        self, call: Call, *, call_id: object, cwd: str, readable: Iterable[str] = ()
    ) -> dict[str, Any]:
        """Return the verdict on a call, as `own` does.

        `cwd` is the folder of a call that names none. The rules of the policy decide about tools
        that neither run commands nor write files, and limit reading to the project and the
        `readable` folders.

        Raises:
            ValueError: a path is invalid.
        """
        cwd = os.path.join(cwd, call.cwd) if call.cwd else cwd
        if call.unknown:
            return self.own(denied(call.tool, call.unknown), call.tool, call_id)
        outside = self._outside([os.path.join(cwd, path) for path in call.reads], readable)
        if outside is not None:
            from cuggino.guard.rules import unlisted

            read = denied(f"{call.tool} {outside}", unlisted("Read"))
            return self.own(read, call.tool, call_id)
        verdict = self.judge(call.tool, call.input, cwd)
        if self.is_by_rules(call.tool) and isinstance(call.input, Mapping):
            from cuggino.guard.rules import with_rules

            if call.tool not in READERS:
                verdict = with_rules(verdict, self.policy, call.tool, call.input, cwd)
        return self.own(verdict, call.tool, call_id)

    def is_by_rules(self, tool: object) -> bool:
        """Return whether permission rules decide about a call that the guard allows (AUT-261)."""
        return self.policy.rules is not None and tool not in SHELLS | FILE_TOOLS

    def own(self, verdict: Verdict, tool: object, call_id: object) -> dict[str, Any]:
        """Return the verdict as an object, with the token of the session and the call's id.

        A denial has its `part` and the `reason`, worded for the agent.
        """
        own = {"token": self.token, "tool_use_id": call_id, "tool": tool}
        own["decision"] = verdict.decision
        if not verdict.is_allowed:
            own["part"] = next(p.text for p in verdict.parts if p.reason)[:_LONGEST_PART]
            reasons = dict.fromkeys(part.reason for part in verdict.parts if part.reason)
            own["reason"] = "\n".join([*reasons][:_MOST_REASONS])[:_LONGEST_REASON]
        return own

    def _outside(self, paths: Iterable[str], readable: Iterable[str]) -> str | None:
        """Return the first of the paths that may not be read."""
        if self.policy.rules is None:
            return None
        roots = [os.path.realpath(root) for root in (self.policy.project, *readable)]
        for path in paths:
            real = os.path.realpath(path)
            if not any(os.path.commonpath([root, real]) == root for root in roots):
                return path
        return None


def load_rules() -> None:
    """Import all rules, for a process that judges calls long after its start.

    Each rule is otherwise imported by the first call that needs it, and the package may have been
    replaced by then.
    """
    import importlib
    import pkgutil

    import cuggino.guard

    for module in pkgutil.walk_packages(cuggino.guard.__path__, "cuggino.guard."):
        importlib.import_module(module.name)


def unknown_call(tool: str, given: Any) -> Call:
    """Return a call that the guard cannot judge."""
    why = f"Tool '{tool}' is not known to the guard: use commands, or the tools for files"
    return Call(tool, given, why)


def _nothing_read(_tool: str, _given: Mapping[str, Any]) -> tuple[str, ...]:
    return ()


class Tools(NamedTuple):
    """A program's tools, for the conversion of its calls to Claude Code's names."""

    names: Mapping[str, str]
    """Claude Code's names of the program's own tools; a tool that is missing is unknown."""
    inputs: Mapping[str, Mapping[str, str]] = {}
    """Claude Code's names of inputs that differ, by Claude Code's name of the tool."""
    shell_keys: Collection[str] = ("command", "description")
    """Inputs of commands; others could change where or how a command runs."""
    folder: str = ""
    """The input that names the folder of a command."""
    needs: Mapping[str, str] = {}
    """Inputs that have to be texts, by the program's own tool; else the call is unknown."""
    readers: Collection[str] = ()
    """The program's own tools that read files."""
    reads: Callable[[str, Mapping[str, Any]], tuple[str, ...]] = _nothing_read
    """Return the files and folders that a reader reads, by Claude Code's name and inputs."""
    paths: tuple[str, ...] = ()
    """Inputs with paths, which become absolute."""
    prefix: str = "{server}_"
    """The beginning of the names of an MCP server's tools."""
    replaced: str = ""
    """Pattern of the characters of a server's name that become underscores in the prefix."""
    servers: tuple[str, ...] = ()
    """MCP servers that come with the program."""

    def call(
        self,
        name: str,
        given: Any,
        *,
        cwd: str = "",
        server: tuple[str, str] | None = None,
        servers: Iterable[str] = (),
    ) -> Call:
        """Convert a call to Claude Code's tool names; unknown tools keep their names.

        `server` is the MCP server and its tool, if reported; otherwise it is the longest of
        `servers` whose prefix the tool's name has. Paths are relative to `cwd`. Never raises.
        """
        tool = self.names.get(name) if server is None else None
        if tool is None:
            found = server or self.server_of(name, servers)
            return server_call(*found, given) if found else unknown_call(name, given)
        if (key := self.needs.get(name)) is not None and not (
            isinstance(given, Mapping) and isinstance(given.get(key), str)
        ):
            return unknown_call(name, given)
        if tool == "MultiEdit":
            return patch_call(given)
        call = renamed_call(tool, given, self.inputs.get(tool, {}))
        if call.unknown:
            return call
        held = {
            key: os.path.join(cwd, value) if key in self.paths and isinstance(value, str) else value
            for key, value in call.input.items()
        }
        call = call._replace(input=held)
        if tool == "Bash" and not isinstance(held.get("command"), str):
            return unknown_call(name, given)
        if tool == "Bash":
            own = os.path.join(cwd, str(held.get(self.folder) or ""))
            return shell_call(call._replace(cwd=own or None), self.shell_keys)
        return call._replace(reads=self.reads(tool, held)) if name in self.readers else call

    def server_of(self, name: str, servers: Iterable[str]) -> tuple[str, str] | None:
        """Return the MCP server and its tool by the name of a tool, or None."""
        prefixes = {
            self.prefix.format(server=self.plain(server)): server
            for server in (*servers, *self.servers)
        }
        for prefix in sorted(prefixes, key=len, reverse=True):
            if name.startswith(prefix):
                return prefixes[prefix], name[len(prefix) :]
        return None

    def plain(self, name: str) -> str:
        """Return the name of a server as it appears in names of tools."""
        return re.sub(self.replaced, "_", name) if self.replaced else name

    def of(self, tool: str) -> tuple[str, ...]:
        """Return the program's own names of a tool of Claude Code."""
        return tuple(name for name, common in self.names.items() if common == tool)


def renamed_call(tool: str, given: Any, names: Mapping[str, str]) -> Call:
    """Return a call whose inputs have other `names`.

    With two names for one input it is unknown which one counts.
    """
    if not isinstance(given, Mapping):
        return unknown_call(tool, given)
    renamed = {names.get(key, key): value for key, value in given.items()}
    return Call(tool, renamed) if len(renamed) == len(given) else unknown_call(tool, renamed)


def shell_call(call: Call, known: Collection[str]) -> Call:
    """Return a call of the shell; inputs that are not `known` could change where or how it runs."""
    more = sorted(str(key) for key in call.input if key not in known)
    return call._replace(unknown=f"Leave out {', '.join(more)}") if more else call


def patch_call(patch: Any) -> Call:
    """Return the call of a patch, a text or an object of texts, which may change several files."""
    from cuggino.guard.patches import patched_files

    if isinstance(patch, Mapping):
        patch = "\n".join(value for value in patch.values() if isinstance(value, str))
    if not isinstance(patch, str):
        return unknown_call("MultiEdit", patch)
    edits = [{"file_path": file} for file in patched_files(patch)]
    given = {"edits": edits, "patch": patch}
    return Call("MultiEdit", given) if edits else unknown_call("MultiEdit", given)


def server_call(server: str, tool: str, given: Any) -> Call:
    """Return the call of a tool of an MCP server."""
    return Call(f"mcp__{server}__{tool}", given)
