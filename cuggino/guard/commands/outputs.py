"""Options by which tools write files, and formatters that rewrite what they are given."""

from __future__ import annotations

import re

from cuggino.guard.commands.base import Call, first
from cuggino.guard.commands.wordlist import words
from cuggino.guard.shell.tree import Word

_OUTPUT = re.compile(
    r"--?(out|output|out-?file|out-?dir|output-?(file|dir|path|directory)|dist-?dir|dest|destination"
    r"|junit-?xml|log-?file|report-?(file|dir)|basetemp|target-dir|artifact-dir|build-path"
    r"|work-?dir|coverage-?(dir|directory|output)|declarationdir|tsbuildinfofile|coverprofile|cpuprofile"
    r"|memprofile|blockprofile|mutexprofile|outputdir|save|write-to|cache-?(dir|location|file)"
    r"|baseline-file|generate-baseline|log-junit|coverage-(html|clover|xml|text|php))",
    re.IGNORECASE,
)
_SHORT_O = frozenset(
    words(
        "gcc cc g++ c++ clang clang++ ld go rustc eslint webpack rollup deno biome pandoc dot nvcc"
        " tcc icc icx emcc em++ ghc ocamlc ocamlopt swiftc nasm yasm bison flex swig ldc2 gnatmake"
        " fpc iconv xmllint ruff"
    )
)
_SHORT_D = frozenset(words("javac kotlinc scalac groovyc coverage"))
"""Programs whose `-d` is the folder that they write into."""
_ANY_OUTPUT = re.compile(
    r"--?[\w-]*(output|dir|directory|dest|destination|path|file|folder|root|prefix|blob|section|store"
    r"|report|trace|emit)",
    re.IGNORECASE,
)
"""Options, of any program, whose value is a path."""
_LOOKS = re.compile(
    r"exclude|ignore|skip|omit|prune|config|input|filter|msg|message|edit|git-?dir|from|read"
    r"|pattern|match|include|hidden|watch|source",
    re.IGNORECASE,
)
"""Parts of the names of options that only read from a path, or ignore it."""
_OWN_O = frozenset(words("od ag ack hexdump stat nl strings ssh mount"))
"""Programs whose `-o` names no file."""
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
    "clang-format": re.compile(r"-i"),
    "shfmt": re.compile(r"-w|--write"),
    "yq": re.compile(r"-i|--in-?place"),
}


def outputs_reason(call: Call) -> str:
    """Return why a tool may not write what its options or operands name."""
    words = call.args
    for index, word in enumerate(words):
        if word.value is None:
            continue
        if reason := _guarded(call, index):
            return reason
        name, equals, value = word.value.partition("=")
        follows = words[index + 1] if index + 1 < len(words) else None
        target: Word | None = None
        if _OUTPUT.fullmatch(name) or (name == "-o" and call.name in _SHORT_O):
            target = (
                word._replace(value=value, has_tilde=value.startswith("~")) if equals else follows
            )
        elif call.name in _FOLDERS and _is_folder(call.name, name):
            target = word._replace(value=value) if equals else follows
        elif call.name in _SHORT_D and name == "-d":
            target = follows
        elif _is_joined(call.name, name):
            target = word._replace(value=word.value[2:])
        if target is None or target.value is None or target.value.startswith("-"):
            continue
        if target.has_glob or (target.value == "" and equals):
            continue
        if reason := call.site.write(target):
            return reason
    return _rewritten(call)


def _guarded(call: Call, index: int) -> str:
    """Return why the value of any option may not be a protected path."""
    text = call.args[index].value or ""
    name, equals, value = text.partition("=")
    if not text.startswith("-") or _LOOKS.search(name):
        return ""
    is_short = text[:2] in ("-o", "-O") and call.name not in _OWN_O
    named = [value] if equals else []
    if is_short and len(text) > 2:
        named.append(text[2:])
    is_output = (is_short and len(text) == 2) or _ANY_OUTPUT.fullmatch(text) is not None
    if is_output and index + 1 < len(call.args):
        named.append(call.args[index + 1].value or "")
    # `--dump-section NAME=FILE`, `--cov-report KIND:FILE`
    named += [part for path in named for part in re.split(r"[=:]", path)[1:]]
    return first(call.site.paths.guards(path, call.site.known) for path in named if path)


def _is_joined(program: str, option: str) -> bool:
    """Return whether the path follows the letter directly: `-oFILE`, `-CFOLDER`."""
    if re.match(r"-o[^=]", option):
        return program in _SHORT_O and program != "go"
    return bool(_SHORT_FOLDER.get(program)) and re.match(r"-C.", option) is not None


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
    files = [word for word in call.args if word.value and not word.value.startswith("-")]
    # The first operand of yq is what it calculates.
    files = files[call.name == "yq" :]
    return first(call.site.write(word) for word in files if not word.has_glob)
