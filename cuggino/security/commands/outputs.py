"""Options by which tools write files, and formatters that rewrite what they are given."""

from __future__ import annotations

import re

from cuggino.security.commands.base import Call, first
from cuggino.security.commands.wordlist import words
from cuggino.security.shell.tree import Word

_OUTPUT = re.compile(
    r"--?(out|output|out-?file|out-?dir|output-?(file|dir|path|directory)|dist-?dir|dest|destination"
    r"|junit-?xml|log-?file|report-?(file|dir)|basetemp|target-dir|artifact-dir|build-path"
    r"|work-?dir|coverage-?(dir|directory|output)|declarationdir|tsbuildinfofile|coverprofile|cpuprofile"
    r"|memprofile|blockprofile|mutexprofile|outputdir|save|write-to|cache-?(dir|location|file)"
    r"|baseline-file|generate-baseline|log-junit|coverage-(html|clover|xml|text|php))",
    re.IGNORECASE,
)
_SHORT_O = frozenset(
    words("go gcc cc g++ clang clang++ c++ rustc eslint webpack rollup deno biome pandoc dot")
)
_FOLDER = re.compile(r"--(prefix|dir|cwd|directory|project-dir|working-dir)|-C|-d")
_FOLDERS = frozenset(
    words("npm pnpm yarn bun uv poetry pdm composer make gmake cmake ninja go cargo mvn")
)
_SHORT_FOLDER = {
    "make": "C", "gmake": "C", "ninja": "C", "pnpm": "C", "go": "C", "yarn": "", "cargo": "C",
}  # fmt: skip
_ALWAYS = frozenset(["rustfmt", "black", "phpcbf", "isort", "cargo-fmt"])
_CHECKS = re.compile(r"--(check|diff|dry-run|version|help|list-different|check-only|print-config)")
_REWRITES = {
    "gofmt": re.compile(r"-\w*w"),
    "goimports": re.compile(r"-\w*w"),
    "prettier": re.compile(r"--write|-w"),
    "eslint": re.compile(r"--fix"),
    "standard": re.compile(r"--fix"),
    "biome": re.compile(r"--(write|apply|fix)[\w-]*"),
    "rubocop": re.compile(r"-[aAx]|--auto-?correct[\w-]*|--fix-layout"),
    "ruff": re.compile(r"--fix|format"),
    "autopep8": re.compile(r"-i|--in-place"),
    "php-cs-fixer": re.compile(r"fix"),
    "stylelint": re.compile(r"--fix"),
}


def outputs_reason(call: Call) -> str:
    """Why a tool must not write what its options or operands name."""
    words = call.args
    for index, word in enumerate(words):
        if word.value is None:
            continue
        name, equals, value = word.value.partition("=")
        follows = words[index + 1] if index + 1 < len(words) else None
        target: Word | None = None
        if _OUTPUT.fullmatch(name) or (name == "-o" and call.name in _SHORT_O):
            target = (
                word._replace(value=value, has_tilde=value.startswith("~")) if equals else follows
            )
        elif call.name in _FOLDERS and _is_folder(call.name, name):
            target = word._replace(value=value) if equals else follows
        elif call.name in _SHORT_FOLDER and re.match(r"-C.", name) and _SHORT_FOLDER[call.name]:
            target = word._replace(value=word.value[2:])
        if target is None or target.value is None or target.value.startswith("-"):
            continue
        if target.has_glob or (target.value == "" and equals):
            continue
        if reason := call.site.write(target):
            return reason
    return _rewritten(call)


def _is_folder(program: str, option: str) -> bool:
    if option in ("-C", "-d") and option[1:] != _SHORT_FOLDER.get(program):
        return False
    return bool(_FOLDER.fullmatch(option))


def _rewritten(call: Call) -> str:
    texts = [word.value or "" for word in call.args]
    pattern = _REWRITES.get(call.name)
    rewrites = call.name in _ALWAYS or (
        pattern is not None and any(pattern.fullmatch(text) for text in texts)
    )
    if not rewrites or any(_CHECKS.fullmatch(text) for text in texts):
        return ""
    return first(
        call.site.write(word)
        for word in call.args
        if word.value and not word.value.startswith("-") and not word.has_glob
    )
