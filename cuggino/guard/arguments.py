"""Rules for the arguments of unknown tools, such as those of MCP servers.

A tool whose name implies reading is allowed. For any other tool, no argument may name a protected
file, no argument that is called a path may lead where the session must not write, and a session
with a short list of writable files may not name other files. This catches mistakes; only a server's
own rules can control what the server really does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from cuggino.guard.commands.wordlist import words
from cuggino.guard.files import judge_file, values
from cuggino.guard.paths import Paths
from cuggino.guard.policy import OWN_SERVERS, Policy
from cuggino.guard.verdict import Part

_READS = re.compile(
    r"(get|read|list|search|find|query|fetch|view|show|describe|stat|grep|glob|tree|count|check|"
    r"look|lookup|resolve|inspect|browser_(?!run|evaluate|install|file|pdf|take))(_|-|(?=[A-Z])|$)"
    r"|browser_(navigate|click|snapshot|console|network|wait|resize|close|tab|hover|type|press)"
)
_WRITES = frozenset(
    words(
        "write replace edit delete remove create update set put move rename save insert "
        "append patch apply exec execute run eval checkout reset upload install push commit "
        "drop truncate modify overwrite add import sync fix format restore revert kill send "
        "post publish"
    )
)
"""Words in the name of a tool that does more than read, however its name begins."""

_NAME_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_PATHS = re.compile(
    r"(?i:(.*[_-])?(paths?|files?|filename|filepath|dir|directory|folder|dest|destination))"
    r"|.*(Path|File|Filename|Dir|Directory|Folder|Destination)s?"
)
_PLACES = re.compile(r"(?i)(.*[_-])?(target|source|src|dst|output|out|to|from)")
_SCRIPTS = re.compile(r"(?i)(command|cmd|script|code|arg|argument|argv|shell)s?")
_URL = re.compile(r"(?i)(?!file:)[a-z][a-z0-9+.-]+://")
_WORDS = re.compile(r"[^\s'\"`;|&<>(){}=,]+")
_LONGEST_SCRIPT = 65_536


def judge_arguments(
    policy: Policy, paths: Paths, tool: str, tool_input: Mapping[str, object], cwd: str
) -> Iterator[Part]:
    """Yield a part for each argument that looks like a file to be written."""
    is_server = tool.startswith("mcp__")
    if tool.startswith(OWN_SERVERS) or (is_server and _only_reads(tool.rpartition("__")[2])):
        return
    if not is_server and policy.level == "full":
        yield Part(tool, f"Tool '{tool}' is not known here: use Bash, or the tools for files")
        return
    cwds = (cwd,) if cwd else ()
    limited = policy.writable is not None or policy.mode == "sync"
    for key, value in values(tool_input):
        if not isinstance(value, str) or not value or _URL.match(value):
            continue
        text = value[7:] if value.lower().startswith("file://") else value
        named = _PATHS.fullmatch(key) or (_PLACES.fullmatch(key) and _is_path(text))
        if _SCRIPTS.fullmatch(key) and not _is_path(text):
            yield from _judge_script(paths, tool, text, cwd)
        elif named:
            yield Part(f"{tool} {key}: {text}", judge_file(policy, paths, text, cwd))
        elif _is_path(text):
            reason = judge_file(policy, paths, text, cwd) if limited else paths.guards(text, cwds)
            yield Part(f"{tool} {key}: {text}", reason)


def _only_reads(name: str) -> bool:
    parts = {part.lower() for part in _NAME_PARTS.findall(name)}
    return _READS.match(name) is not None and parts.isdisjoint(_WRITES)


def _judge_script(paths: Paths, tool: str, text: str, cwd: str) -> Iterator[Part]:
    """Yield a denied part if a word of a script in any language names a protected file."""
    if len(text) > _LONGEST_SCRIPT:
        yield Part(tool, "The text is too long to be judged: put it in a file")
        return
    cwds = (cwd,) if cwd else ()
    for word in dict.fromkeys(_WORDS.findall(text)):
        if reason := paths.guards(word, cwds):
            yield Part(f"{tool} {word}", reason)
            return


def _is_path(text: str) -> bool:
    """Return whether the text looks like a path rather than a sentence."""
    return len(text) <= 4096 and not re.search(r"\s", text) and bool(re.search(r"[/\\]|^\.", text))
