"""Settings and addresses of git that start no program."""

from __future__ import annotations

import re

from cuggino.guard.commands.base import Call
from cuggino.guard.commands.options import Parsed, Syntax, parse_options
from cuggino.guard.shell.tree import Word

_KEY = re.compile(
    r"user\.(name|email|signingkey|useconfigonly)"
    r"|core\.(autocrlf|safecrlf|filemode|ignorecase|quotepath|eol|longpaths|symlinks|abbrev"
    r"|precomposeunicode|compression|preloadindex|untrackedcache|commentchar|whitespace"
    r"|logallrefupdates|bare|protecthfs|protectntfs)"
    r"|init\.defaultbranch|(pull|push|fetch|rebase|merge|rerere|commit|tag|status|log|color|column"
    r"|advice|diff|branch|stash|gc|pack|http|protocol|submodule|feature|format|checkout|clone)"
    r"\.[\w.*/-]+|remote\.[\w.-]+\.(fetch|prune|tagopt|pushurl|url)"
)
_RUNS = re.compile(
    r"(.*\.)?(external|command|textconv|driver|tool|cmd|path|program|helper|proxy|sshcommand"
    r"|gitproxy|askpass|uploadpack|receivepack|vcs|pager|editor|template|update|hookspath"
    r"|fsmonitor|templatedir|attributesfile|excludesfile|guitool|browser|cookiefile|savecookies"
    r"|sslcert|sslkey|sslcainfo|sslcapath|sslverify|allow|recentobjectshook|defaultremotename"
    r"|wordregex|signature|to|cc|outputdirectory|worktree|attachtemplate|bundleuri|format"
    r"|curloptresolve|useragent|extraheader|alternaterefscommand|verify|gpgsign)"
)
_FALSE = re.compile(r"false|0|no|off|", re.IGNORECASE)
_IDLE = re.compile(r"cat|true|:|less|", re.IGNORECASE)
_HELPER = re.compile(r"^[A-Za-z0-9.+-]+::")


def setting_reason(key: str, value: str | None) -> str:
    """Return why the setting may not get the value, None if unknown."""
    name = key.lower()
    hint = "the setting would start a program or lead elsewhere; leave it as it is"
    if _RUNS.fullmatch(name):
        if name in ("commit.gpgsign", "tag.gpgsign") and value is not None:
            if _FALSE.fullmatch(value):
                return ""
        elif value is not None and re.fullmatch(r"core\.pager|core\.editor|sequence\.editor", name):
            if _IDLE.fullmatch(value) and value != "less":
                return ""
        elif name == "format.pretty":
            return ""
        return f"git must not set {key}: {hint}"
    if not _KEY.fullmatch(name):
        return f"git must not set {key}: only harmless settings may be changed; {hint}"
    if value is not None and (value.startswith("!") or _HELPER.match(value)):
        return f"git must not set {key} to a command"
    return ""


def config(call: Call) -> str:
    """Allow reading, and setting harmless keys of this repository."""
    given = parse_options(
        call.args,
        Syntax("ft", ("file", "blob", "type", "default", "comment", "value"),
               ("global", "system", "local", "worktree", "get", "get-all", "get-regexp", "list",
                "add", "replace-all", "unset", "unset-all", "edit", "name-only", "show-origin",
                "show-scope", "includes", "null", "bool", "int", "path", "get-urlmatch",
                "get-color", "get-colorbool", "rename-section", "remove-section")),
    )  # fmt: skip
    if given.unclear:
        return f"Cannot tell what '{given.unclear[0].text}' means to git config: write it literally"
    operands = [word.value for word in given.operands]
    reads = given.has("--get", "--get-all", "--get-regexp", "--list", "-l", "--get-urlmatch",
                      "--get-color", "--get-colorbool")  # fmt: skip
    verb = operands[0] if operands and operands[0] in _VERBS else ""
    if reads or verb in ("get", "list", "get-color", "get-colorbool"):
        return ""
    if given.has("-e", "--edit") or verb in ("edit", "rename-section", "remove-section"):
        return "git config must not open an editor or move sections: set one key"
    if given.has("--rename-section", "--remove-section"):
        return "git config must not move sections: set one key"
    words = list(given.operands[1:] if verb else given.operands)
    if not words:
        return ""
    is_set = bool(verb) or len(words) > 1 or given.has("--unset", "--unset-all", "--add",
                                                        "--replace-all")  # fmt: skip
    if not is_set:
        return ""
    if given.has("-f", "--file", "--global", "--system", "--worktree", "--blob"):
        return "git config must only change the settings of this repository: use --local"
    if call.site.is_limited:
        return f"{_who(call)} must not change git's settings"
    if words[0].value is None:
        return "Cannot tell which setting is changed: write its key literally"
    return setting_reason(words[0].value, words[1].value if len(words) > 1 else "")


_VERBS = ("get", "set", "unset", "list", "edit", "rename-section", "remove-section", "get-color",
          "get-colorbool")  # fmt: skip


def _who(call: Call) -> str:
    return f"the {call.site.policy.role} agent" if call.site.policy.role else "this session"


def address_reason(words: tuple[Word, ...]) -> str:
    """Return why an address would start a program, such as `ext::`."""
    for word in words:
        text = word.value if word.value is not None else word.prefix
        if _HELPER.match(text):
            return f"'{word.text}' makes git start a program: use an https or ssh address"
    return ""


def overridden(given: Parsed) -> str:
    """Return why a `-c key=value` is denied."""
    for option in given.options:
        if option.name in ("--config-env", "--exec-path") and option.value is not None:
            return f"git must not be given {option.name}: it decides which programs git starts"
        if option.name != "-c":
            continue
        text = option.value.value if option.value is not None else None
        if text is None:
            return "Cannot tell which setting git -c changes: write it literally"
        key, equals, value = text.partition("=")
        if reason := setting_reason(key, value if equals else "true"):
            return reason
    return ""
