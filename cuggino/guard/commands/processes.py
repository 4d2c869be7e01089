"""Rules for `chmod`, `pkill` and `kill`."""

from __future__ import annotations

import re
from collections.abc import Collection

from cuggino.guard.commands.base import Call, first
from cuggino.guard.commands.files import unsure
from cuggino.guard.commands.wordlist import words

_MODE = r"[0-7]{3,4}|[ugoa]*[+-][rwx]+"
_PLUS_X = r"[ugoa]*\+x"
_SIGNAL = r"-(\d{1,2}|(SIG)?[A-Z]{2,6}\d?)"
_PKILL_FLAGS = r"-[fxe]+|--(full|exact|echo)"


def chmod_reason(args: Collection[str]) -> str:
    """Return why the arguments are not `+x` and files (AUT-166)."""
    words = list(args)
    if any(word.startswith("-R") for word in words):
        return "chmod -R (recursive) is not allowed"
    if len(words) < 2:
        return "chmod requires mode and target file(s)"
    mode, *files = words
    if mode.isdigit():
        return "chmod numeric modes are not allowed: use +x, or leave the mode as it is"
    if not re.fullmatch(_PLUS_X, mode):
        return f"chmod mode '{mode}' is not allowed, only +x variants permitted"
    for file in files:
        if file.startswith("-"):
            return f"chmod must not be given '{file}': only +x and files are permitted"
    return ""


def pkill_reason(args: Collection[str], targets: Collection[str]) -> str:
    """Return why the arguments are not one allowed process (AUT-167, AUT-216)."""
    names: list[str] = []
    words = list(args)
    while words:
        word = words.pop(0)
        if word == "--signal" and words:
            word = f"-{words.pop(0)}"
        elif word.startswith("--signal="):
            word = f"-{word[9:]}"
        if not word.startswith("-"):
            names.append(word)
        elif word == "--":
            return "pkill must not be given '--': name the process only"
        elif not (re.fullmatch(_PKILL_FLAGS, word) or re.fullmatch(_SIGNAL, word)):
            named = next((rest for rest in words if not rest.startswith("-")), "")
            if named and named not in targets:
                return f"pkill target '{named}' is not allowed, only dev processes permitted"
            return f"pkill must not be given '{word}': only a signal, -f, -x and one process"
    if not names or names == [""]:
        return "pkill requires a process name"
    for name in names:
        if name not in targets:
            return f"pkill target '{name}' is not allowed, only dev processes permitted"
    if len(names) > 1:
        return "pkill takes one process name: call it once for each"
    return ""


def chmod(call: Call) -> str:
    """Allow `+x` on files that may be changed; with `extended` also other plain modes."""
    if call.site.is_open and call.args and re.fullmatch(_MODE, call.args[0].value or ""):
        return first(map(call.site.change, call.args[1:]))
    for word in call.args:
        if word.value is None or (word.has_glob and word.value.startswith(("-", "+"))):
            return unsure("chmod", word)
    reason = chmod_reason([word.value or "" for word in call.args])
    return reason or first(map(call.site.change, call.args[1:]))


def pkill(call: Call) -> str:
    """Allow the processes of the profiles."""
    for word in call.args:
        if word.value is None or word.has_glob or word.has_tilde:
            return (
                f"pkill target '{word.text}' is not allowed, only dev processes permitted: write"
                " the name out"
            )
    words = [word.value or "" for word in call.args]
    if call.site.is_open:
        words = [word.partition(" ")[0] for word in words]
    return pkill_reason(words, call.site.pkill_targets)


ENDERS = frozenset(words("kill pkill killall killall5 shutdown reboot halt poweroff"))
"""Programs that may end the processes of others."""
_OF_OTHERS = frozenset(words("-u -U -v --euid --uid --user --inverse"))
_OTHERS = r"(.*/)?(cuggino|claude|codex|gemini|opencode|copilot|bwrap|sshd|systemd|init)"


def ending_reason(call: Call) -> str:
    """Return why level `roles` denies ending processes: they are not the session's own."""
    if call.site.is_destructive:
        return ""
    texts = [word.value or "" for word in call.args]
    if call.name == "kill":
        return kill(call)
    if call.name not in ("pkill", "killall"):
        return f"{call.name} is not allowed: it ends what others run; allowDestructive allows it"
    for text in texts:
        if text in _OF_OTHERS or re.fullmatch(_OTHERS, text) or text in (".", ".*"):
            return (
                f"{call.name} must not be given '{text}': it ends processes that are not the"
                " session's own; name a program that it started"
            )
    return ""


def kill(call: Call) -> str:
    """Allow single processes and jobs; not all processes of the user at once."""
    words = [word.value or "" for word in call.args if not re.fullmatch(_SIGNAL, word.value or "")]
    if "-1" in words or [word.value for word in call.args[1:]].count("-1"):
        return "kill must not end all processes: name the process or the job"
    return ""
