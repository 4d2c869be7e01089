"""Inline code of interpreters: a filter against mistakes (facts 6.3).

It does not stop intent: an interpreter can run anything. The sandbox is the boundary.
"""

from __future__ import annotations

import re

from cuggino.guard.commands.base import Call
from cuggino.guard.commands.files import PROGRAMS, files_reason
from cuggino.guard.commands.publishing import SENDERS, sending_reason
from cuggino.guard.commands.wordlist import words
from cuggino.guard.shell.tree import Word

_SHELL_OUT = re.compile(
    r"\bsubprocess\b|\bos\s*\.\s*(system|popen|exec\w*|spawn\w*|posix_spawn\w*)\b|\bpty\.spawn"
    r"|\bchild_process\b|\b(exec|spawn|execFile)Sync\b|\bDeno\s*\.\s*(Command|run)\b"
    r"|\bBun\s*\.\s*(spawn|spawnSync|\$)|import\s*\{\s*\$\s*\}|\bfrom os import .*\b(system|popen)"
)
_SHELL_OUT_OTHER = re.compile(
    r"(?<![.\w>])(system|exec|shell_exec|passthru|popen|proc_open|spawn|pcntl_exec|fork)\s*[(\"']"
    r"|\b(Kernel|IO|Open3|Process)\s*[.:]|%x|`"
)
_WRITES = re.compile(
    r"open\s*\([^)]*,\s*(mode\s*=\s*)?[\"'][rbt]*[wax+]|write|dump\s*\(|rmtree|\bremove|unlink"
    r"|rename|replace\s*\(|rmdir|\brm(Sync)?\s*\(|\bcp(Sync)?\s*\(|copy|move|mkdir|makedirs|touch"
    r"|truncate|symlink|\blink(Sync)?\s*\(|chmod|chown|append|put_contents|fopen|fputs|delete"
    r"|FileUtils|File\.new|>\s*[\"']|\+?[wa]\+?[\"']\s*\)",
    re.IGNORECASE,
)
_CODE = {
    "python": ("c", ()),
    "node": ("ep", ("eval", "print")),
    "bun": ("ep", ("eval", "print")),
    "deno": ("", ()),
    "ruby": ("e", ()),
    "php": ("rBRE", ("run", "process-begin", "process-code", "process-end")),
    "perl": ("eE", ()),
    "irb": ("", ()),
}
_PROGRAMS = frozenset(
    words("pip black isort ruff autopep8 coverage pytest mypy flake8 virtualenv uv poetry")
)
"""Programs that are modules as well."""
_WITH_VALUE = {
    "python": "WXmQ", "node": "rC", "ruby": "rICEFTSWx", "php": "cdfStz", "perl": "IMmFD0",
}  # fmt: skip


def interpreter(call: Call) -> str:
    """Scan inline code; files that are run are not read."""
    kind = re.sub(r"[\d.]+$", "", call.name)
    letters, long = _CODE[kind]
    codes: list[str] = []
    runs_file = False
    args = list(call.args)
    if kind in ("deno", "bun") and args and args[0].value == "eval":
        codes += [word.text for word in args[1:]]
    while args and not runs_file:
        word = args.pop(0)
        text = word.value if word.value is not None else (word.prefix or word.text)
        if text.startswith("--"):
            name, equals, value = text[2:].partition("=")
            if name in long:
                codes.append(value if equals else _text(args.pop(0)) if args else "")
        elif text.startswith("-") and len(text) > 1:
            codes += _letters(text, letters, _WITH_VALUE.get(kind, ""), args)
            runs_file = kind == "python" and text.startswith("-m")
            if kind in ("perl", "ruby") and re.match(r"-[lnpawsS0-7]*i", text):
                return _in_place(call)
        elif text != "-":
            runs_file = True
    if call.site.is_fed and not runs_file and not codes:
        codes.append(call.site.document or call.site.feed)
    if kind == "python" and (reason := _module(call)):
        return reason
    for code in codes:
        if reason := scan(call, kind, code):
            return reason
    return ""


def _module(call: Call) -> str:
    """Judge `python -m NAME` like the program of that name."""
    texts = [word.value for word in call.args]
    if "-m" not in texts[:-1]:
        return ""
    at = texts.index("-m") + 1
    name, rest = texts[at] or "", call.args[at + 1 :]
    if name in SENDERS:
        return sending_reason(Call(name, rest, call.site))
    if name in PROGRAMS:
        return files_reason(Call(name, rest, call.site))
    if name in _PROGRAMS and name in call.site.listed:
        return call.site.judge((call.args[at], *rest), call.site)
    return ""


def _letters(text: str, letters: str, with_value: str, args: list[Word]) -> list[str]:
    for index, letter in enumerate(text[1:], 2):
        if letter in letters:
            rest = text[index:]
            if rest and letter == "p" and rest[0] in letters:
                continue
            return [rest or (_text(args.pop(0)) if args else "")]
        if letter in with_value:
            if not text[index:] and args:
                args.pop(0)
            return []
    return []


def _text(word: Word) -> str:
    return word.value if word.value is not None else word.text


def _in_place(call: Call) -> str:
    """Judge the files that `perl -i` changes."""
    files = [word for word in call.args if not (word.value or word.prefix).startswith("-")]
    for word in files[1:] if any("e" in (w.value or "")[:6] for w in call.args[:-1]) else files:
        if reason := call.site.change(word):
            return reason
    return ""


def scan(call: Call, kind: str, code: str) -> str:
    """Return why the code is denied: it writes protected files, or starts programs."""
    folded = re.sub(r"[\s\"'+]+", "", code).lower()
    for name in call.site.policy.protected:
        if name.lower() in folded and _names(name, code) and _WRITES.search(code):
            return (
                f"The code of {call.name} names {name} and writes or removes something: what is in"
                " it must not be changed; reading it is allowed"
            )
    if call.site.is_open:
        return ""
    other = kind in ("ruby", "php", "perl", "irb") and _SHELL_OUT_OTHER.search(code)
    if _SHELL_OUT.search(code) or other:
        return (
            f"The code of {call.name} starts another program: call that program directly, so that"
            " it can be judged"
        )
    return ""


def _names(name: str, code: str) -> bool:
    """Return whether the code names the path, not another one such as .gitignore."""
    if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", code, re.IGNORECASE):
        return True
    joined = re.sub(r"[\"']\s*\+\s*[\"']", "", code)
    return bool(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", joined, re.IGNORECASE))
