"""Rules for shells, `eval`, `source` and other commands that run a text."""

from __future__ import annotations

import os
import re

from cuggino.guard.commands.base import UNKNOWN, Call, first
from cuggino.guard.commands.options import Syntax, parse_options
from cuggino.guard.commands.wordlist import words
from cuggino.guard.shell.tree import Word

SHELLS = frozenset(words("sh bash dash zsh ksh mksh fish ash rbash csh tcsh yash pwsh"))
_VENV = re.compile(r"(?:\./)?(?:[\w-]+/){0,3}\.?v?env[\w.-]*/bin/activate")


def shell(call: Call) -> str:
    """Judge the text of a shell; allow scripts of the project (facts 6.13)."""
    given = parse_options(
        call.args,
        Syntax("oO" if call.name != "fish" else "dfDCp", ("rcfile", "init-file", "command"),
               ("login", "noprofile", "norc", "posix", "restricted", "verbose"), permutes=False),
    )  # fmt: skip
    if given.has("--rcfile", "--init-file", "--command", "-s", "-i", "-C"):
        return f"{call.name} must get its commands as the text of -c, or directly"
    if any(word.value is None or word in given.unclear[:1] for word in call.args[:1]):
        return f"Cannot tell what {call.name} runs: write the commands literally"
    # `+x` and `-` are options too, anywhere before the text or the script.
    if given.operands and (given.operands[0].value or "").startswith(("+", "-")):
        return f"{call.name} must not be given '{given.operands[0].text}': leave it out"
    if given.has("-c"):
        return _text(call, given.operands)
    if not given.operands:
        if given.has("--version", "--help"):
            return ""
        if call.site.document is not None:
            return _judged(call, call.site.document)
        return f"{call.name} must not run what it reads: write the commands without {call.name}"
    script = given.operands[0]
    if script.value is None or script.has_glob or script.has_tilde:
        return f"Cannot tell which script '{script.text}' is: write its path literally"
    if script.value.startswith(("/dev/", "/proc/")):
        return f"{call.name} must not run what it reads: write the commands literally"
    return first(
        f"'{script.value}' is outside the project: run scripts of the project only"
        for cwd in (call.site.known or {"/"})
        if not call.site.paths.is_inside(script.value, cwd)
    )


def _text(call: Call, operands: tuple[Word, ...]) -> str:
    if not operands or operands[0].value is None:
        return f"The text that {call.name} -c runs is not known: write the commands literally"
    return _judged(call, operands[0].value)


def _judged(call: Call, text: str) -> str:
    if call.name in ("fish", "csh", "tcsh", "pwsh", "zsh"):
        return f"The language of {call.name} cannot be judged: use the commands directly"
    return call.site.judge_text(text, call.site)


def evaluate(call: Call) -> str:
    """Deny `eval`: its words are run as a text."""
    return (
        f"Command '{call.name}' is not in the allowlist: it runs text that has not been judged;"
        " write the commands directly"
    )


def source(call: Call) -> str:
    """Allow activating the project's virtual environment (facts 6.14); `extended`: any script."""
    word = call.args[0] if call.args else Word("", None)
    reason = (
        f"Command '{call.name}' is not in the allowlist but for the activation of the project's"
        " virtual environment, such as 'source .venv/bin/activate'"
    )
    if word.value is None or word.has_glob or word.has_tilde or len(call.args) != 1:
        return reason
    cwds = call.site.known
    if call.site.is_open:
        inside = bool(cwds) and all(call.site.paths.is_inside(word.value, cwd) for cwd in cwds)
        return "" if inside and not call.site.paths.guards(word.value, cwds) else reason
    relative = os.path.relpath(word.value, call.site.paths.project)
    text = relative if os.path.isabs(word.value) else os.path.normpath(word.value)  # noqa: PTH117
    if not _VENV.fullmatch(text) or ".." in text or not cwds:
        return reason
    inside = all(call.site.paths.is_inside(word.value, cwd) for cwd in cwds)
    return "" if inside else reason


def trap(call: Call) -> str:
    """Allow ignoring and resetting a signal; with `extended` judge the text."""
    args = call.args[1:] if call.args and call.args[0].value == "--" else call.args
    if not args or args[0].value in ("", "-", "-p", "-l"):
        return ""
    if args[0].value is None or not call.site.is_open:
        return "trap must not run a text: end the commands in the order in which they are written"
    return call.site.judge_text(args[0].value, call.site._replace(cwds=frozenset({UNKNOWN})))


def watch(call: Call) -> str:
    """Judge the words of `watch` as one text for a shell."""
    given = parse_options(call.args, Syntax("nq", ("interval",), ("differences",), permutes=False))
    if not given.operands or any(word.value is None for word in given.operands):
        return "Cannot tell what watch runs: write the command literally"
    return call.site.judge_text(" ".join(word.value or "" for word in given.operands), call.site)
